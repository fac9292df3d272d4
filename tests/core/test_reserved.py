from __future__ import annotations

import pytest

from core.reserved import DISPATCH_SET_TOPIC, GAP_TOPIC, RESERVED_TOPICS, is_bridge_state


def test_the_logs_own_topics_are_all_reserved():
    assert {DISPATCH_SET_TOPIC, GAP_TOPIC} == RESERVED_TOPICS


@pytest.mark.parametrize("name", [b"", b"a/b"])
def test_the_state_of_a_bridge_has_one_level_for_its_name(name):
    assert is_bridge_state(b"$SYS/broker/connection/edge/state")
    assert not is_bridge_state(b"$SYS/broker/connection/" + name + b"/state")
    assert not is_bridge_state(b"$SYS/broker/connection/edge/state\n")

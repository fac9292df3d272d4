from __future__ import annotations

from core.reserved import DISPATCH_SET_TOPIC, GAP_TOPIC, RESERVED_TOPICS


def test_the_logs_own_topics_are_all_reserved():
    assert {DISPATCH_SET_TOPIC, GAP_TOPIC} == RESERVED_TOPICS

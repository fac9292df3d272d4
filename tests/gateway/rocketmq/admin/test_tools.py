from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gateway.rocketmq.admin.tools import TOOL_CODES
from gateway.rocketmq.functions import FUNCTIONS
from tests.support.rocketmq import request_frame
from tests.support.rocketmq_tools import ask_tool

NAMES = (
    "topic",
    "group",
    "consumerGroup",
    "producerGroup",
    "clientId",
    "namespace",
    "key",
    "value",
    "cluster",
    "msgId",
    "timestamp",
    "queueId",
    "offset",
    "isForce",
    "clientAddr",
)
VALUES = st.one_of(
    st.sampled_from(["T", "g", "-1", "9" * 30, "", "%RETRY%g", "%LMQ%q", "\x00", "1e400", "true"]), st.text(max_size=8)
)


@pytest.mark.parametrize("code", sorted(TOOL_CODES))
def test_a_request_without_fields_is_answered(peer, code):
    assert code in FUNCTIONS
    assert ask_tool(peer, code).code in {0, 1, 16, 22}
    assert not peer.transport.is_closed


@pytest.mark.parametrize("code", [27, 306, 316, 329])
def test_cleaning_lets_go_of_what_is_past_its_age(peer, code):
    peer.send(b"x")
    assert ask_tool(peer, code).code == 0
    assert peer.pull("T").code == 0


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(TOOL_CODES)),
    st.dictionaries(st.sampled_from(NAMES), VALUES),
    st.one_of(st.binary(max_size=40), st.sampled_from([b"[" * 9_000, b"{}", b'{"a":1e999}', b"a=" + b"9" * 5_000])),
)
def test_any_fields_are_answered_and_cost_nobody_the_connection(site, peer, code, fields, body):
    answer = ask_tool(peer, code, body, **fields)
    assert answer.code in {0, 1, 2, 16, 17, 22, 26, 29, 206, 207}
    assert answer.code in {0, 22} or answer.remark
    assert not peer.transport.is_closed
    peer.give(request_frame(105, topic="TBW102"))
    assert peer.take()

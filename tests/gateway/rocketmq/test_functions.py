from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gateway.rocketmq.functions import FUNCTIONS
from gateway.rocketmq.handler import PULLS, SENDS
from gateway.rocketmq.queue_locks import LOCK_MS
from lmq.remoting.commands import Command, encode_command
from lmq.remoting.request_codes import RequestCode
from tests.support.rocketmq import request_frame


def test_each_request_has_one_that_answers_it():
    others = {*PULLS, *SENDS, RequestCode.HEART_BEAT}
    assert not others & {*FUNCTIONS}


@pytest.mark.parametrize("code", sorted(FUNCTIONS))
def test_a_request_that_says_nothing_is_answered_and_the_connection_goes_on(site, peer, code):
    assert peer.ask(code).is_response
    assert not peer.transport.is_closed


def test_locks_and_configs_are_answered(site, peer):
    body = {"consumerGroup": "g", "clientId": "c", "mqSet": [{"topic": "T", "brokerName": "b", "queueId": 0}]}
    assert json.loads(bytes(peer.ask(41, json.dumps(body).encode()).body))["lockOKMQSet"] == body["mqSet"]
    assert peer.ask(42, json.dumps(body).encode()).code == 0
    other = body | {"clientId": "d"}
    assert json.loads(bytes(peer.ask(41, json.dumps(other).encode()).body))["lockOKMQSet"] == body["mqSet"]
    assert json.loads(bytes(peer.ask(41, json.dumps(body).encode()).body))["lockOKMQSet"] == []
    site.now_ms += LOCK_MS
    assert json.loads(bytes(peer.ask(41, json.dumps(body).encode()).body))["lockOKMQSet"] == body["mqSet"]
    assert peer.ask(46, b'{"subscriptionData":{"expressionType":"TAG"}}').code == 0
    assert peer.ask(35, clientID="c", consumerGroup="g").code == 0


TEXTS = st.one_of(
    st.sampled_from(
        ["", "T", "g", "0", "-1", "9" * 30, "1e400", "true", "%LMQ%q", "%RETRY%g", "\x00", "SQL92", "a > 1"]
    ),
    st.text(max_size=8),
)
NAMES = [
    "topic", "consumerGroup", "producerGroup", "group", "queueId", "queueOffset", "commitOffset", "offset",
    "maxMsgNums", "maxNum", "sysFlag", "suspendTimeoutMillis", "pollTime", "bornTime", "invisibleTime",
    "initMode", "exp", "expType", "expressionType", "subscription", "order", "extraInfo", "key", "indexType",
    "beginTimestamp", "endTimestamp", "timestamp", "delayLevel", "maxReconsumeTimes", "originMsgId",
    "tranStateTableOffset", "commitLogOffset", "commitOrRollback", "transactionId", "recallHandle",
    "clientID", "i", "b", "e", "m",
]  # fmt: skip
BODIES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"{}", b"[]", b"[" * 9_000, b'{"clientID":5,"consumerDataSet":7}', b'{"acks":[{"c":"g","b":"AQ=="}]}']
    ),
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted({*FUNCTIONS, *PULLS, *SENDS, RequestCode.HEART_BEAT})),
    st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=20),
    BODIES,
)
def test_any_fields_of_any_request_are_answered_once_at_most_and_cost_nobody_the_connection(
    site, peer, code, fields, body
):
    peer.give(encode_command(Command(code, 7, ext=fields, body=body)))
    site.turn()
    answers = [one for one in peer.take() if one.is_response]
    assert [one.opaque for one in answers] in ([7], [])  # what waits is answered later
    assert all(one.remark for one in answers if one.code == 1)
    peer.give(request_frame(105, opaque=8, topic="TBW102"))
    assert [one.opaque for one in peer.take() if one.is_response] == [8]
    assert not peer.transport.is_closed

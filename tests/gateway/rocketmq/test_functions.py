from __future__ import annotations

import json

import pytest

from gateway.rocketmq.functions import FUNCTIONS
from gateway.rocketmq.handler import PULLS, SENDS
from lmq.remoting.request_codes import RequestCode


def test_each_request_has_one_that_answers_it():
    others = {*PULLS, *SENDS, RequestCode.HEART_BEAT}
    assert not others & {*FUNCTIONS}


@pytest.mark.parametrize("code", sorted(FUNCTIONS))
def test_a_request_that_says_nothing_is_answered_and_the_connection_goes_on(site, peer, code):
    assert peer.ask(code).is_response
    assert not peer.transport.is_closed


def test_locks_and_configs_are_answered(peer):
    body = {"consumerGroup": "g", "clientId": "c", "mqSet": [{"topic": "T", "brokerName": "b", "queueId": 0}]}
    assert json.loads(bytes(peer.ask(41, json.dumps(body).encode()).body))["lockOKMQSet"] == body["mqSet"]
    assert peer.ask(42, json.dumps(body).encode()).code == 0
    assert peer.ask(46, b'{"subscriptionData":{"expressionType":"TAG"}}').code == 0
    assert peer.ask(35, clientID="c", consumerGroup="g").code == 0

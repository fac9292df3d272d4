from __future__ import annotations

import json

import pytest

from gateway.rocketmq.filters.sql_filter import SQL92
from tests.support.rocketmq_door import SUSPENDED, bodies_of
from tests.support.rocketmq_pop import ask_pop, pop, start_pop

WANTED = {"expressionType": SQL92, "subscription": "TAGS = 'new' AND price > 10"}
BAD_SQL = ["", "a >", "a > 'x'", "(" * 9_000, "a LIKE 'x%'", "NOT " * 2_000 + "a", "a = 1;", "\x00", "é = 1"]


def send_prices(peer, *prices, tag="new"):
    for price in prices:
        peer.send(b"%d" % price, properties=f"TAGS\x01{tag}\x02price\x01{price}\x02")


def beat(peer, text, version=1, client="c"):
    subscription = {"topic": "T", "subString": text, "expressionType": SQL92, "subVersion": version}
    group = {"groupName": "g", "subscriptionDataSet": [subscription]}
    return peer.ask(34, json.dumps({"clientID": client, "consumerDataSet": [group]}).encode())


def check(peer, text, kind=SQL92):
    subscription = {"topic": "T", "subString": text, "expressionType": kind}
    return peer.ask(46, json.dumps({"clientId": "c", "group": "g", "subscriptionData": subscription}).encode())


def test_a_pull_gets_what_its_sql_wants(peer):
    send_prices(peer, 5, 11, 10, 20)
    send_prices(peer, 30, tag="old")
    peer.send(b"plain")
    answer = peer.pull("T", **WANTED)
    assert bodies_of(answer) == [b"11", b"20"]
    assert answer.ext["nextBeginOffset"] == "6"
    assert peer.pull("T", 4, **WANTED).code == 20


def test_a_pull_filters_by_the_heartbeat_of_its_group(peer):
    send_prices(peer, 5, 11)
    assert beat(peer, "price < 10").code == 0
    assert bodies_of(peer.pull("T", sysFlag=0, subVersion=1)) == [b"5"]
    beat(peer, "price > 10", version=2)
    assert bodies_of(peer.pull("T", sysFlag=0, subVersion=2)) == [b"11"]
    assert peer.pull("T", sysFlag=0, subVersion=3).code == 25


def test_a_held_pull_waits_for_a_message_that_its_sql_wants(site, peer):
    producer = site.connect()
    send_prices(producer, 1)
    peer.start_pull("T", 1, **WANTED, sysFlag=4 | SUSPENDED)
    send_prices(producer, 5)
    assert peer.take() == []
    send_prices(producer, 50)
    (answer,) = peer.take()
    assert bodies_of(answer) == [b"50"]


@pytest.mark.parametrize("text", BAD_SQL)
def test_a_wrong_filter_is_told_to_the_client_that_says_it(peer, text):
    peer.send()
    for answer in (peer.pull("T", expressionType=SQL92, subscription=text), check(peer, text)):
        assert answer.code == 23
        assert answer.remark.startswith("parse the consumer's subscription failed: ")
    if text:  # without a text a heartbeat wants all
        beat(peer, text)
        assert peer.pull("T", sysFlag=0).code == 27


def test_filters_are_checked_before_a_consumer_starts(peer):
    assert check(peer, "a IS NOT NULL").code == 0
    assert check(peer, "a || b", "TAG").code == 0
    assert check(peer, "a", "XPATH").code == 1
    assert peer.ask(46, b"{}").code == 0


def test_light_queues_are_filtered_too(peer):
    peer.send(b"1", properties="INNER_MULTI_DISPATCH\x01%LMQ%q\x02n\x011\x02")
    peer.send(b"2", properties="INNER_MULTI_DISPATCH\x01%LMQ%q\x02n\x012\x02")
    assert bodies_of(peer.pull("%LMQ%q", expressionType=SQL92, subscription="n = 2")) == [b"2"]


def test_a_dear_filter_moves_on_by_few_messages_a_pull(peer):
    dear = " OR ".join(["name CONTAINS 'x'"] * 180)
    for _ in range(40):
        peer.send(properties="name\x01abc\x02")
    answer = peer.pull("T", expressionType=SQL92, subscription=dear)
    assert answer.code == 20
    assert 0 < int(answer.ext["nextBeginOffset"]) < 40


def test_a_pop_gets_what_its_sql_wants(peer):
    send_prices(peer, 5, 11, 10, 20)
    assert [message.body for message in pop(peer, expType=SQL92, exp="price > 10")] == [b"11", b"20"]
    assert pop(peer, expType=SQL92, exp="price > 0") == []  # the others are done for the group
    assert ask_pop(peer, expType=SQL92, exp="price >").code == 23


def test_a_pop_by_a_dear_filter_comes_to_the_wanted_message(site, peer):
    dear = " OR ".join(["name CONTAINS 'x'"] * 180)
    for name in ["abc"] * 40 + ["x"]:
        peer.send(name.encode(), properties=f"name\x01{name}\x02")
    start_pop(peer, expType=SQL92, exp=dear, pollTime=15_000)
    answers = []
    for _ in range(20):
        site.turn()
        answers += peer.take()
    (answer,) = answers
    assert bodies_of(answer) == [b"x"]

from __future__ import annotations

import json

import pytest

from core.lmq.queue_name import amqp_passing_name, amqp_queue_name, mqtt_queue_name
from gateway.auth.permissions import ALL
from gateway.rocketmq.name_rights import may_read, may_read_record, may_write
from lmq.remoting.message_codec import Record
from lmq.remoting.signature import AccessKeys
from tests.gateway.auth.test_permissions import make_book, of
from tests.support.rocketmq_access import CREATE_USER, ROOT, ask_as, open_site

PARENT = b"LMQ_PARENT"
RULES = (
    {"permit": "deny", "topics": ["secret/#"]},
    {"permit": "deny", "names": ["hidden", "%LMQ%hidden"]},
)


@pytest.mark.parametrize(
    ("name", "is_allowed"),
    [
        (b"T/3", True),
        (b"T", True),
        (b"hidden/0", False),
        (b"%RETRY%hidden/0", False),
        (b"%DLQ%hidden", False),
        (b"%RETRY%g", True),
        (PARENT, False),
        (PARENT + b"/0", False),
        (b"SCHEDULE_TOPIC_XXXX/2", False),
        (mqtt_queue_name(b"secret/a"), False),
        (mqtt_queue_name(b"+/a"), False),
        (mqtt_queue_name(b"open/#"), True),
        (mqtt_queue_name(b"open/" + b"x" * 200), False),
        (amqp_queue_name(b"/", b"hidden"), False),
        (amqp_queue_name(b"v", b"q"), True),
        (amqp_passing_name(b"/", 3), False),
        (b"%LMQ%hidden", False),
        (b"%LMQ%other", True),
    ],
)
def test_names_that_may_be_read(name, is_allowed):
    assert may_read(of(make_book(*RULES)), PARENT, name) == is_allowed
    assert may_read(ALL, PARENT, name)


@pytest.mark.parametrize(
    ("name", "is_allowed"),
    [
        (b"T", True),
        (b"hidden", False),
        (b"%RETRY%hidden", False),
        (mqtt_queue_name(b"secret/a"), False),
        (mqtt_queue_name(b"#"), False),
        (mqtt_queue_name(b"open/+"), True),
        (amqp_queue_name(b"/", b"hidden"), False),
        (amqp_passing_name(b"/", 3), False),
    ],
)
def test_names_that_may_be_written_to(name, is_allowed):
    assert may_write(of(make_book(*RULES)), name) == is_allowed


def record(topic, **properties):
    said = {name.encode(): value for name, value in properties.items()}
    return Record(topic, 0, 0, 0, 0, 0, 0, b"", 0, b"", 0, b"", said)


def of_queue(queue):
    return record(PARENT, LMQ_TOPIC=b"k", LMQ_EXCHANGE=b"", INNER_MULTI_DISPATCH=amqp_queue_name(b"/", queue))


@pytest.mark.parametrize(
    ("one", "is_allowed"),
    [
        (record(b"T"), True),
        (record(b"hidden"), False),
        (record(b"hidden", LMQ_TOPIC=b"open/a"), False),
        (record(PARENT, LMQ_TOPIC=b"open/a"), True),
        (record(PARENT, LMQ_TOPIC=b"secret/a"), False),
        (record(PARENT, LMQ_TOPIC=b"open/a", LMQ_EXCHANGE=b"e"), False),
        (of_queue(b"q"), True),
        (of_queue(b"hidden"), False),
        (record(PARENT), False),
    ],
)
def test_messages_that_may_be_read(one, is_allowed):
    assert may_read_record(of(make_book(*RULES)), PARENT, one) == is_allowed
    assert may_read_record(ALL, PARENT, one)


def test_nobody_sends_to_what_the_gateway_tells():
    assert not may_write(ALL, mqtt_queue_name(b"$events/#"))
    assert may_write(ALL, mqtt_queue_name(b"plant/#"))


def test_places_locks_and_members_of_a_group_are_not_for_those_that_may_not_read_its_topic(tmp_path, engine_maker):
    site = open_site(tmp_path / "d", engine_maker)
    root, ann = site.connect(), AccessKeys("ann", "12345678")
    ask_as(ROOT, root, CREATE_USER, {"password": ann.secret_key}, username="ann")
    ask_as(ROOT, root, 17, topic="T", readQueueNums=1, writeQueueNums=1, perm=6, topicFilterType="SINGLE_TAG")
    queue = {"topic": "T", "queueId": 0}
    wanted = {"topic": "T", "subString": "*", "subVersion": 1, "expressionType": "TAG"}
    consumer = {"groupName": "g", "consumeType": "CONSUME_PASSIVELY", "subscriptionDataSet": [wanted]}
    mode = {"topic": "T", "consumerGroup": "g", "mode": "POP"}

    def ask_all(keys):
        peer = site.connect()
        codes = [ask_as(keys, peer, 15, **queue, consumerGroup="g", commitOffset=0).code]
        codes.append(ask_as(keys, peer, 401, mode).code)
        ask_as(keys, peer, 34, {"clientID": keys.access_key, "consumerDataSet": [consumer]})
        locks = {"consumerGroup": "g", "clientId": keys.access_key, "mqSet": [{**queue, "brokerName": "b"}]}
        held = json.loads(bytes(ask_as(keys, peer, 41, locks).body))["lockOKMQSet"]
        return codes, site.door.clients.members_of("g"), len(held)

    assert ask_all(ann) == ([16, 16], [], 0)
    assert ask_all(ROOT) == ([0, 0], ["root"], 1)
    site.close()

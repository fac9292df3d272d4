from __future__ import annotations

from pathlib import Path

from core.properties import RESERVED
from lmq.message import message_of
from lmq.queues import MessageQueue
from lmq.remoting.message_codec import Record, decode_records

LOG = (Path(__file__).parents[1] / "data" / "rocketmq-5.5.0" / "commitlog.bin").read_bytes()


def record(**properties: str) -> Record:
    encoded = {name.encode(): value.encode() for name, value in properties.items()}
    return Record(b"LMQ_PARENT", 0, 5, 99, 0, 0, 1, bytes(8), 2, bytes(8), 0, b"body", encoded)


def test_a_message_tells_where_it_came_from():
    properties = {"LMQ_TOPIC": "site/1", "LMQ_PROTOCOL": "mqtt", "LMQ_CLIENT": "dev", "LMQ_USER": "ann", "unit": "C"}
    message = message_of(record(CONTENT_TYPE="text/plain", **properties), MessageQueue("%LMQ%q", "b", 0), 17)
    assert (message.mqtt_topic, message.protocol, message.client, message.user) == ("site/1", "mqtt", "dev", "ann")
    assert (message.topic, message.queue, message.queue_offset) == ("LMQ_PARENT", "%LMQ%q", 17)
    assert (message.content_type, message.user_properties) == ("text/plain", {"unit": "C"})


def test_a_message_without_a_door_came_by_rocketmq():
    message = message_of(record(TAGS="a", KEYS="k1 k2", UNIQ_KEY="U"), MessageQueue("T", "b", 0), 5)
    assert message.protocol == "rocketmq"
    assert (message.tags, message.keys, message.key) == ("a", ["k1", "k2"], "U")
    assert (message.client, message.mqtt_topic) == ("", "")


def test_what_the_log_adds_is_no_user_property():
    found = [message_of(one, MessageQueue("q", "b", 0), 0) for one in decode_records(LOG)]
    assert any("INNER_MULTI_QUEUE_OFFSET" in message.properties for message in found)
    assert not any("INNER_MULTI_QUEUE_OFFSET" in message.user_properties for message in found)


def test_no_name_that_the_log_reserves_is_a_user_property():
    names = [name.decode() for name in RESERVED]
    message = message_of(record(unit="C", **dict.fromkeys(names, "x")), MessageQueue("q", "b", 0), 0)
    assert message.user_properties == {"unit": "C"}

from __future__ import annotations

import pytest
from pamqp import commands, header

from core.lmq.topic_space import routing_key_from_topic, topic_from_routing_key
from core.message import FLAG_MARK
from core.properties import decode_properties, encode_properties
from gateway.amqp.codec import PublishCutter
from gateway.amqp.delivery_codec import DeliveryEncoder
from tests.support import amqp

PAYLOAD_MAX = 131_064


def encoder():
    return DeliveryEncoder(routing_key_from_topic)


def from_amqp(block, topic=b"a/b", **more):
    cutter = PublishCutter(1)
    cutter.add(b"\x00\x00", 0, block, b"", b"guest")
    extra = bytes(cutter.batch.extra[: cutter.batch.extra_end[0]])
    properties = {b"LMQ_TOPIC": topic, **more, b"LMQ_PROTOCOL": b"amqp"}
    return properties | decode_properties(extra) | {b"INNER_MULTI_DISPATCH": b"%LMQ%x"}


def test_a_block_comes_out_as_it_went_in():
    sent = commands.Basic.Properties(
        content_type="text/plain", headers={"n": 1, "t": {"deep": [1, "x"]}}, delivery_mode=2, message_id="m1"
    )
    batch = amqp.stored([(from_amqp(sent.marshal()), b"body")])
    data = encoder().encode_deliveries(batch, 5, b"\x03tag", 9, PAYLOAD_MAX)
    (channel, method), (_, content), (_, body) = amqp.decode_frames(data)
    assert channel == 5
    assert isinstance(method, commands.Basic.Deliver)
    assert (method.consumer_tag, method.delivery_tag, method.redelivered) == ("tag", 9, False)
    assert (method.exchange, method.routing_key) == ("amq.topic", "a.b")
    assert isinstance(content, header.ContentHeader)
    assert content.properties == sent
    assert content.body_size == 4
    assert body.value == b"body"


def test_a_run_with_equal_and_different_properties_keeps_them_apart():
    one = from_amqp(amqp.block(content_type="one"))
    two = from_amqp(amqp.block(content_type="two"), LMQ_EXCHANGE=b"")
    messages = [(one, b"1"), (one, b"2"), (two, b"3"), (two, b"4"), (one, b"5")]
    messages = [({k if isinstance(k, bytes) else k.encode(): v for k, v in p.items()}, b) for p, b in messages]
    batch = amqp.stored(messages, attempts=[1, 2, 1, 1, 1])
    frames = amqp.decode_frames(encoder().encode_deliveries(batch, 1, b"\x01c", 1, PAYLOAD_MAX))
    assert [f.delivery_tag for _, f in frames[0::3]] == [1, 2, 3, 4, 5]
    assert [f.redelivered for _, f in frames[0::3]] == [False, True, False, False, False]
    assert [f.properties.content_type for _, f in frames[1::3]] == ["one", "one", "two", "two", "one"]
    assert [f.value for _, f in frames[2::3]] == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.parametrize("key", [b"", b"a.b.c", b"a/b", b"50%", b"a%2Eb", b"x" * 255, b"*", b"a.*.b"])
def test_the_routing_key_is_made_of_the_topic(key):
    batch = amqp.stored([({b"LMQ_TOPIC": topic_from_routing_key(key), b"LMQ_PROTOCOL": b"mqtt"}, b"")])
    (_, method), _ = amqp.decode_frames(encoder().encode_deliveries(batch, 1, b"\x01c", 1, PAYLOAD_MAX))
    assert method.routing_key.encode() == key


def test_a_message_of_mqtt_gets_properties():
    properties = {
        b"LMQ_TOPIC": b"site/1",
        b"LMQ_PROTOCOL": b"mqtt",
        b"LMQ_CLIENT": b"dev-1",
        b"LMQ_USER": b"joe",
        b"CONTENT_TYPE": b"application/json",
        b"colour": b"blue",
        b"x-user": b"forged",
        b"INNER_MULTI_DISPATCH": b"%LMQ%x",
        b"INNER_MULTI_QUEUE_OFFSET": b"1",
        b"__CRC32#": b"123",
    }
    batch = amqp.stored([(properties, b"{}")], flag=FLAG_MARK | 5, born_ms=1_700_000_000_123)
    _, (_, content), _ = amqp.decode_frames(encoder().encode_deliveries(batch, 1, b"\x01c", 1, PAYLOAD_MAX))
    got = content.properties
    assert got.content_type == "application/json"
    assert got.delivery_mode == 2
    assert int(got.timestamp.timestamp()) == 1_700_000_000
    assert got.headers == {
        "x-client-id": "dev-1",
        "x-user": "joe",
        "x-protocol": "mqtt",
        "timestamp_in_ms": 1_700_000_000_123,
        "x-mqtt-publish-qos": 1,
        "x-mqtt-retain": True,
        "colour": "blue",
    }


def test_a_message_without_a_protocol_is_from_rocketmq():
    flag = 6  # the producer's own, nothing of ours
    batch = amqp.stored([({b"TAGS": b"t", b"INNER_CITY": b"kept", b"WAIT": b"true"}, b"x")], flag=flag)
    _, (_, content), _ = amqp.decode_frames(encoder().encode_deliveries(batch, 1, b"\x01c", 1, PAYLOAD_MAX))
    assert content.properties.headers == {
        "x-protocol": "rocketmq",
        "timestamp_in_ms": 0,
        "TAGS": "t",
        "INNER_CITY": "kept",
    }
    assert content.properties.delivery_mode == 2


@pytest.mark.parametrize("forged", [b"!!!", b"AAAAAAAA", b"/////w==", b""])
def test_a_block_that_is_none_is_not_passed_on(forged):
    batch = amqp.stored([({b"LMQ_PROTOCOL": b"amqp", b"LMQ_AMQP": forged}, b"x")])
    _, (_, content), _ = amqp.decode_frames(encoder().encode_deliveries(batch, 1, b"\x01c", 1, PAYLOAD_MAX))
    assert content.properties.headers["x-protocol"] == "amqp"


def test_a_topic_too_long_for_a_routing_key_is_cut_and_told_in_a_header():
    topic = "ä".encode() * 200
    batch = amqp.stored([({b"LMQ_TOPIC": topic, b"LMQ_PROTOCOL": b"mqtt"}, b"x")])
    (_, method), (_, content), _ = amqp.decode_frames(encoder().encode_deliveries(batch, 1, b"\x01c", 1, PAYLOAD_MAX))
    assert method.routing_key == "ä" * 127
    assert content.properties.headers["x-topic"] == "ä" * 200


def test_a_long_body_is_cut_into_frames():
    batch = amqp.stored([({b"LMQ_PROTOCOL": b"mqtt"}, bytes(range(256)) * 40)])
    frames = amqp.decode_frames(encoder().encode_deliveries(batch, 1, b"\x01c", 1, 4_088))
    assert [len(f.value) for _, f in frames[2:]] == [4_088, 4_088, 2_064]
    assert b"".join(f.value for _, f in frames[2:]) == bytes(range(256)) * 40


def test_get_ok_says_how_many_are_left():
    batch = amqp.stored([({b"LMQ_PROTOCOL": b"mqtt", b"LMQ_TOPIC": b"t"}, b"x")])
    (_, method), _, _ = amqp.decode_frames(encoder().encode_get_ok(batch, 1, 4, PAYLOAD_MAX, 17))
    assert isinstance(method, commands.Basic.GetOk)
    assert (method.delivery_tag, method.message_count, method.routing_key) == (4, 17, "t")


def test_properties_of_any_size_fit():
    names = {b"%c" % (97 + i % 26) * (1 + i % 3): b"" for i in range(78)}
    batch = amqp.stored([({b"LMQ_PROTOCOL": b"mqtt"} | names, b"")] * 50)
    data = encoder().encode_deliveries(batch, 1, b"\xff" + b"c" * 255, 1, 4_088)
    assert len(amqp.decode_frames(data)) == 100


def test_encoded_properties_are_read_to_their_end():
    assert encode_properties({b"a": b"b"}) == b"a\x01b\x02"

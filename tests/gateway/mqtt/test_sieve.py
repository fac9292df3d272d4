from __future__ import annotations

from core.message import FLAG_BARE, FLAG_MARK, StoredBatch
from core.properties import encode_origin
from gateway.mqtt.packets import NO_LOCAL, RETAIN_AS_PUBLISHED
from gateway.mqtt.publish_encoder import Form, PublishEncoder
from gateway.mqtt.session import Session, Subscription
from gateway.mqtt.sieve import fits, has_own_form, keep_wanted, leave_out_sent

MINE = encode_origin(b"mqtt", b"me", b"")
OTHERS = encode_origin(b"mqtt", b"me too", b"")


def batch_of(*messages):
    """Return a batch of topic `t`, with the properties and body of each message, numbered from 10."""
    batch = StoredBatch(max(len(messages), 1))
    buf = b"t"
    for i, (properties, body) in enumerate(messages):
        batch.topic_start[i], batch.topic_end[i] = 0, 1
        batch.properties_start[i] = len(buf)
        buf += properties
        batch.properties_end[i] = batch.body_start[i] = len(buf)
        buf += body
        batch.body_end[i] = len(buf)
        batch.queue_offset[i] = 10 + i
        batch.flag[i] = FLAG_MARK | 1 | (FLAG_BARE if properties in {MINE, OTHERS} else 0)
    batch.buf = buf
    batch.count = len(messages)
    return batch


def subscription(options=0, level=5):
    session = Session(b"me", b"", is_persistent=False)
    session.level = level
    made = Subscription(session, b"t", 1, 0, 0)
    made.options = options
    return made


def bodies(batch):
    return [bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]) for i in range(batch.count)]


def test_own_messages_are_left_out_where_they_are_not_wanted():  # MQTT-3.8.3-3
    batch = batch_of((MINE, b"a"), (OTHERS, b"b"), (b"", b"c"), (MINE, b"d"))
    assert keep_wanted(batch, subscription(NO_LOCAL)) == []
    assert bodies(batch) == [b"b", b"c"]


def test_what_was_sent_exactly_once_before_is_left_out():
    batch = batch_of((MINE, b"a"), (OTHERS, b"b"), (b"", b"c"))
    made = subscription()
    made.done_before = {11: 0}
    leave_out_sent(batch, made)
    assert bodies(batch) == [b"a", b"c"]


def test_packet_that_the_client_does_not_take_is_left_out_to_the_byte():  # MQTT-3.1.2-24
    for level in (4, 5):
        made = subscription(level=level)
        batch = batch_of((MINE + b"key\x01value\x02", b"x" * 200))
        size = len(PublishEncoder().encode(batch, 1, 1, 0, 0, Form(level, 0)))
        for packet_bytes_max, expected in ((size, True), (size - 1, False)):
            made.session.packet_bytes_max = packet_bytes_max
            assert fits(batch, 0, made.session, 1, 0) == expected
        assert keep_wanted(batch, made) == [10]
        assert batch.count == 0


def test_options_that_change_the_packet_give_a_form_of_its_own():
    assert not has_own_form(subscription())
    assert has_own_form(subscription(NO_LOCAL))
    assert has_own_form(subscription(RETAIN_AS_PUBLISHED))
    made = subscription()
    made.identifier = 1
    assert has_own_form(made)

from __future__ import annotations

import pytest

from core.message import FLAG_MARK, FLAG_RETAIN, StoredBatch
from gateway.mqtt.publish_encoder import PublishEncoder
from tests.support import mqtt


def stored(*rows):
    """Return a batch of (topic, body, flag) as if read from a queue from offset 10 on."""
    batch = StoredBatch(max(len(rows), 1))
    buf = bytearray()
    for i, (topic, body, flag) in enumerate(rows):
        batch.topic_start[i], batch.topic_end[i] = len(buf), len(buf) + len(topic)
        buf += topic
        batch.body_start[i], batch.body_end[i] = len(buf), len(buf) + len(body)
        buf += body
        batch.flag[i] = flag
        batch.queue_offset[i] = 10 + i
    batch.buf = bytes(buf)
    batch.count = len(rows)
    return batch


def test_publish_goes_out_at_the_lower_qos():
    batch = stored(
        (b"a/b", b"zero", FLAG_MARK), (b"c", b"one", FLAG_MARK | 1), (b"d", b"two", FLAG_MARK | 2 | FLAG_RETAIN)
    )
    encoder = PublishEncoder(8)
    assert encoder.encode(batch, 0, 1) == b"".join(
        (mqtt.publish(b"a/b", b"zero"), mqtt.publish(b"c", b"one"), mqtt.publish(b"d", b"two"))
    )
    assert (encoder.id_count, encoder.body_bytes) == (0, 10)
    assert encoder.encode(batch, 1, 9) == b"".join(
        (
            mqtt.publish(b"a/b", b"zero"),
            mqtt.publish(b"c", b"one", qos=1, packet_id=9),
            mqtt.publish(b"d", b"two", qos=1, packet_id=10),
        )
    )
    assert encoder.id_count == 2


def test_message_from_a_rocketmq_producer_counts_as_qos_1():
    encoder = PublishEncoder(8)
    out = encoder.encode(stored((b"t", b"x", 0), (b"t", b"y", 0x1234)), 1, 1)
    assert [d.qos for d in mqtt.deliveries(out)] == [1, 1]


def test_packet_identifiers_go_on_from_65535_to_1():
    encoder = PublishEncoder(8)
    batch = stored(*[(b"t", b"x", FLAG_MARK | 1)] * 3)
    out = encoder.encode(batch, 1, 65535)
    assert [d.packet_id for d in mqtt.deliveries(out)] == [65535, 1, 2]
    again = encoder.renumber(65534)
    assert [d.packet_id for d in mqtt.deliveries(again)] == [65534, 65535, 1]
    assert [d.packet_id for d in mqtt.deliveries(out)] == [65535, 1, 2]


def test_messages_sent_before_are_marked_or_left_out():
    rows = [(b"t", b"x", FLAG_MARK | 1), (b"t", b"y", FLAG_MARK), (b"t", b"z", FLAG_MARK | 1), (b"t", b"w", FLAG_MARK)]
    out = PublishEncoder(8).encode(stored(*rows), 1, 1, 12)
    assert [(d.body, d.dup) for d in mqtt.deliveries(out)] == [(b"x", True), (b"z", False), (b"w", False)]


def test_retain_flag_is_set_for_all_when_asked():
    out = PublishEncoder(8).encode(stored((b"t", b"x", FLAG_MARK | FLAG_RETAIN)), 0, 1, 0, 1)
    assert mqtt.deliveries(out) == [mqtt.Delivery(b"t", b"x", 0, 0, retain=True, dup=False)]


@pytest.mark.parametrize("size", [0, 1, 120, 125, 126, 127, 16_380, 16_381, 2_097_148, 2_097_149])
def test_length_bytes_grow_at_the_right_sizes(size):
    encoder = PublishEncoder(2)
    for qos in (0, 1):
        out = encoder.encode(stored((b"t", b"x" * size, FLAG_MARK | qos)), 1, 1)
        assert out == mqtt.publish(b"t", b"x" * size, qos=qos, packet_id=qos)


def test_nothing_is_encoded_from_an_empty_batch():
    assert PublishEncoder(2).encode(StoredBatch(2), 1, 1) == b""


def test_same_messages_are_encoded_once_and_never_stale():
    batch = stored((b"a/b", b"zero", FLAG_MARK), (b"c", b"one", FLAG_MARK | 1))
    batch.fill_number = 7
    encoder = PublishEncoder(8)
    zero, one = mqtt.publish(b"a/b", b"zero"), mqtt.publish(b"c", b"one")
    numbered = [mqtt.publish(b"c", b"one", qos=1, packet_id=packet_id) for packet_id in range(10)]
    plain = encoder.encode(batch, 0, 1)
    assert plain == zero + one
    assert encoder.encode(batch, 0, 1) is plain
    assert (encoder.id_count, encoder.body_bytes) == (0, 7)
    assert encoder.encode(batch, 1, 3) == zero + numbered[3]
    assert encoder.encode(batch, 1, 5) == zero + numbered[5]
    assert (encoder.id_count, encoder.body_bytes) == (1, 7)
    assert encoder.renumber(6) == zero + numbered[6]
    assert encoder.encode(batch, 0, 1) == plain
    again = mqtt.publish(b"c", b"one", qos=1, packet_id=2, dup=True)
    assert encoder.encode(batch, 1, 2, 100) == again
    assert encoder.encode(batch, 1, 2) == zero + numbered[2]
    assert encoder.encode(batch, 0, 1, 0, 1) == mqtt.publish(b"a/b", b"zero", retain=True) + mqtt.publish(
        b"c", b"one", retain=True
    )
    assert encoder.encode(batch, 0, 1) == plain
    batch.count = 1
    assert encoder.encode(batch, 0, 1) == zero
    batch.count = 2
    assert encoder.encode(batch, 0, 1) == plain
    other = stored((b"x", b"y", FLAG_MARK))
    other.fill_number = 7
    assert encoder.encode(other, 0, 1) == mqtt.publish(b"x", b"y")
    assert encoder.encode(batch, 0, 1) == plain
    batch.buf = bytes(batch.buf).replace(b"zero", b"none")
    batch.fill_number += 1
    assert encoder.encode(batch, 0, 1) == mqtt.publish(b"a/b", b"none") + one


def test_batch_that_was_filled_by_hand_is_always_encoded_anew():
    batch = stored((b"a", b"old", FLAG_MARK))
    encoder = PublishEncoder(8)
    assert encoder.encode(batch, 0, 1) == mqtt.publish(b"a", b"old")
    batch.buf = b"anew"
    assert encoder.encode(batch, 0, 1) == mqtt.publish(b"a", b"new")

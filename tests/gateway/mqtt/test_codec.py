from __future__ import annotations

import gc
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from core.message import FLAG_QOS_MASK, FLAG_RETAIN
from gateway.mqtt import codec
from gateway.mqtt.codec import PacketReader
from gateway.mqtt.columns import RunColumns, encode_acks
from gateway.mqtt.errors import MqttError, PacketTooLargeError
from tests.support import mqtt

LIMIT = 1 << 20


def read_all(pieces, *, columns=None, limit=LIMIT):
    """Feed `pieces`; return everything found as comparable tuples."""
    columns = columns or RunColumns(8)
    reader = PacketReader(columns, limit)
    found = []
    for piece in pieces:
        reader.receive_data(piece)
        while kind := reader.read_next():
            if kind == codec.PUBLISHES:
                found += messages(columns.batch)
            elif kind == codec.ACKS:
                found += [("ack", columns.packet_ids[i]) for i in range(columns.ack_count)]
            elif kind == codec.PINGS:
                found += ["ping"] * columns.ping_count
            else:
                found.append((reader.packet_type, reader.take_body()))
    return found


def messages(batch):
    return [
        (
            batch.topics[batch.route_index[i]],
            bytes(batch.buf[batch.body_start[i] : batch.body_end[i]]),
            batch.flag[i] & FLAG_QOS_MASK,
            bool(batch.flag[i] & FLAG_RETAIN),
            batch.tag[i],
        )
        for i in range(batch.count)
    ]


STREAM = (
    mqtt.publish(b"a/b", b"one")
    + mqtt.publish(b"a/b", b"two", qos=1, packet_id=7)
    + mqtt.publish(b"c", b"", retain=True)
    + mqtt.publish(b"a/b", b"x" * 300, qos=1, packet_id=65535, dup=True)
    + mqtt.puback(1)
    + mqtt.puback(65535)
    + mqtt.subscribe(3, (b"a/#", 1))
    + mqtt.PINGREQ
    + mqtt.publish(b"d", b"last")
)
FOUND = [
    (b"a/b", b"one", 0, False, 0),
    (b"a/b", b"two", 1, False, 7),
    (b"c", b"", 0, True, 0),
    (b"a/b", b"x" * 300, 1, False, 65535),
    ("ack", 1),
    ("ack", 65535),
    (8, b"\0\x03\0\x03a/#\x01"),
    "ping",
    (b"d", b"last", 0, False, 0),
]


def test_stream_fed_whole_gives_its_packets():
    assert read_all([STREAM]) == FOUND


def test_stream_fed_byte_by_byte_gives_its_packets():
    assert read_all([STREAM[i : i + 1] for i in range(len(STREAM))]) == FOUND


def test_stream_with_a_tail_keeps_the_tail_for_later():
    for cut in range(len(STREAM)):
        assert read_all([STREAM[:cut], STREAM[cut:]]) == FOUND


def test_run_ends_where_the_batch_is_full():
    columns = RunColumns(4)
    reader = PacketReader(columns, LIMIT)
    reader.receive_data(mqtt.publish(b"t", b"x") * 10)
    counts = []
    while reader.read_next():
        counts.append(columns.batch.count)
    assert counts == [4, 4, 2]


def test_distinct_topics_are_kept_once_for_a_run():
    columns = RunColumns(64)
    reader = PacketReader(columns, LIMIT)
    reader.receive_data(b"".join(mqtt.publish(b"t/%d" % (i % 3), b"x") for i in range(12)))
    assert reader.read_next() == codec.PUBLISHES
    assert columns.batch.topics == [b"t/0", b"t/1", b"t/2"]
    assert list(columns.batch.route_index[:12]) == [0, 1, 2] * 4


def test_retained_messages_of_a_run_are_counted():
    columns = RunColumns(8)
    reader = PacketReader(columns, LIMIT)
    reader.receive_data(mqtt.publish(b"t", b"x", retain=True) * 3 + mqtt.publish(b"t", b"x"))
    reader.read_next()
    assert columns.batch.retained_count == 3


def test_sound_messages_before_a_bad_packet_are_given_first():
    columns = RunColumns(8)
    reader = PacketReader(columns, LIMIT)
    for bad in (mqtt.publish(b"", b"x"), b"\x30\xff\xff\xff\xff\x01", b"\xf0\x00", mqtt.publish(b"q", b"", qos=2)):
        reader = PacketReader(columns, LIMIT)
        reader.receive_data(mqtt.publish(b"t", b"x") * 2 + bad)
        assert reader.read_next() == codec.PUBLISHES
        assert columns.batch.count == 2
        with pytest.raises(MqttError):
            reader.read_next()


def test_large_packet_over_many_reads_arrives_whole_and_the_next_one_too():
    body = bytes(range(256)) * 2000
    data = mqtt.publish(b"big", body, qos=1, packet_id=5) + mqtt.publish(b"t", b"after") * 3
    for size in (1000, 4096, 65536, 300_000):
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        assert read_all(pieces, limit=1 << 22) == [(b"big", body, 1, False, 5)] + [(b"t", b"after", 0, False, 0)] * 3


def test_unknown_length_at_the_end_of_a_large_read_is_found_with_the_next_large_read():
    filler = mqtt.publish(b"t", b"x" * 20_000)
    for kept in range(1, 6):
        data = filler + filler
        pieces = [data[: len(filler) + kept], data[len(filler) + kept :]]
        assert read_all(pieces) == [(b"t", b"x" * 20_000, 0, False, 0)] * 2


def test_packet_over_the_limit_is_refused_before_it_arrives():
    with pytest.raises(PacketTooLargeError):
        read_all([mqtt.publish(b"t", b"x" * 200)[:3]], limit=100)
    assert read_all([mqtt.publish(b"t", b"x" * 95)], limit=100) == [(b"t", b"x" * 95, 0, False, 0)]


def test_pings_that_come_together_are_one_run():
    columns = RunColumns(8)
    reader = PacketReader(columns, LIMIT)
    reader.receive_data(mqtt.PINGREQ * 1_000 + mqtt.puback(1) + mqtt.PINGREQ)
    runs = []
    while kind := reader.read_next():
        runs.append((kind, columns.ping_count))
    assert runs == [(codec.PINGS, 1_000), (codec.ACKS, 1_000), (codec.PINGS, 1)]


@pytest.mark.parametrize("size", [100, 3_000, 70_000])
def test_messages_that_a_batch_was_cut_by_are_read_again(size):
    columns = RunColumns(8)
    reader = PacketReader(columns, LIMIT)
    stream = [mqtt.publish(b"t%d" % (i % 3), b"x" * size, qos=1, packet_id=1 + i) for i in range(20)] + [mqtt.PINGREQ]
    reader.receive_data(b"".join(stream) + stream[0][:50])
    ids, pings = [], 0
    while kind := reader.read_next():
        pings += kind == codec.PINGS
        if kind == codec.PUBLISHES:
            columns.batch.count = min(columns.batch.count, 3)
            ids += [columns.batch.tag[i] for i in range(columns.batch.count)]
            reader.unread_publishes()
    assert (ids, pings) == ([*range(1, 21)], 1)
    reader.receive_data(stream[0][50:])
    assert reader.read_next() == codec.PUBLISHES


def test_idle_reader_holds_no_bytes():
    columns = RunColumns(4)
    reader = PacketReader(columns, LIMIT)
    data = mqtt.PINGREQ * 2
    reader.receive_data(data)
    while reader.read_next():
        pass
    assert data not in gc.get_referents(reader)


def test_mqtt_3_1_may_mark_a_subscribe_as_sent_again():
    reader = PacketReader(RunColumns(4), LIMIT)
    reader.is_old = True
    reader.receive_data(b"\x8a" + mqtt.subscribe(1, (b"a", 0))[1:])
    assert reader.read_next() == codec.PACKET


# Nothing but an MqttError ever comes out of bytes.

packets = st.one_of(
    st.builds(
        lambda topic, body, qos, packet_id: mqtt.publish(topic, body, qos=qos, packet_id=packet_id),
        st.binary(min_size=0, max_size=20),
        st.binary(max_size=200),
        st.integers(0, 2),
        st.integers(0, 65535),
    ),
    st.builds(mqtt.puback, st.integers(0, 65535)),
    st.sampled_from([mqtt.PINGREQ, mqtt.DISCONNECT, mqtt.connect(), mqtt.subscribe(1, (b"a/+", 1))]),
    st.sampled_from([data for _, data in mqtt.MALFORMED_FIRST + mqtt.MALFORMED_LATER]),
)


def outcome(pieces):
    found = []
    columns = RunColumns(8)
    reader = PacketReader(columns, 4096)
    try:
        for piece in pieces:
            reader.receive_data(piece)
            while kind := reader.read_next():
                if kind == codec.PUBLISHES:
                    found += messages(columns.batch)
                elif kind == codec.ACKS:
                    found += list(columns.packet_ids[: columns.ack_count])
                elif kind == codec.PINGS:
                    found += ["ping"] * columns.ping_count
                else:
                    found.append((reader.packet_type, reader.take_body()))
    except MqttError as error:
        found.append(error.clause)
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(packets, max_size=8), st.lists(st.integers(0, 600), max_size=6), st.data())
def test_any_split_and_any_damage_ends_in_the_same_packets_or_the_same_error(parts, cuts, data):
    stream = bytearray(b"".join(parts))
    for _ in range(data.draw(st.integers(0, 3))):
        if stream:
            stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    stream = bytes(stream)
    whole = outcome([stream])
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert outcome([stream[a:b] for a, b in pairwise(edges)]) == whole
    assert outcome([stream[i : i + 1] for i in range(len(stream))]) == whole


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_never_raise_anything_else(data):
    outcome([data])


def test_pubacks_answer_the_qos_1_messages_in_order():
    columns = RunColumns(8)
    reader = PacketReader(columns, LIMIT)
    ids = [5, 0, 65535, 256]
    reader.receive_data(b"".join(mqtt.publish(b"t", b"x", qos=1 if i else 0, packet_id=i) for i in ids))
    reader.read_next()
    assert bytes(encode_acks(columns, 4)) == mqtt.puback(5) + mqtt.puback(65535) + mqtt.puback(256)
    assert bytes(encode_acks(columns, 1)) == mqtt.puback(5)

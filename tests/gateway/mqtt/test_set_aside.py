from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.mqtt.set_aside import ALL_BYTES_MAX, KEPT_BYTES_MAX, AsideRoom, SetAside, size_at
from tests.support import mqtt
from tests.support.mqtt import publish

PING, PING_BYTES = mqtt.PINGREQ, 2
LARGE = 1 << 20
PASSED = [PING, mqtt.puback(7), mqtt.pubrec(7), mqtt.pubcomp(7)]
KEPT = [
    publish(b"t", b"x"),
    publish(b"t", b"y" * 200, qos=1, packet_id=9),
    publish(b"t", b"z", qos=2, packet_id=10),
    mqtt.pubrel(10),
    mqtt.subscribe(3, (b"a", 0)),
]


def make(room=None, packet_bytes_max=LARGE):
    return SetAside(room or AsideRoom(), packet_bytes_max)


@given(st.lists(st.sampled_from(PASSED + KEPT)), st.data())
def test_pings_and_acknowledgements_go_on_and_all_else_waits_in_order(packets, data):
    stream, aside, passed = b"".join(packets), make(), b""
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        part = aside.take(stream[:size])
        assert len(part) == sum(map(len, mqtt.cut(part)))
        passed += part
        stream = stream[size:]
    assert passed == b"".join(one for one in packets if one in PASSED)
    assert aside.give_back() == b"".join(one for one in packets if one in KEPT)
    assert not aside.has_left


@given(st.binary(max_size=200), st.integers(1, 40))
def test_whatever_comes_no_byte_is_lost_and_none_is_made(noise, step):
    aside, out = make(packet_bytes_max=100), b""
    for start in range(0, len(noise), step):
        out += aside.take(noise[start : start + step])
    assert sorted(out + aside.give_back()) == sorted(noise)


def test_packet_that_began_before_goes_on():
    packet = publish(b"t", b"x" * 300, qos=1, packet_id=1)
    aside = make()
    assert aside.take(packet[:5]) == b""
    assert aside.take(packet[5:] + PING) == PING
    assert aside.give_back() == packet


def test_messages_at_qos_0_are_dropped_where_there_is_no_room_and_pings_still_answered():
    room = AsideRoom()
    aside = make(room)
    message = publish(b"t", b"x" * 1_000)
    for _ in range(100):
        assert aside.take(message + PING) == PING
    kept_count = KEPT_BYTES_MAX // len(message)
    assert aside.dropped_count == 100 - kept_count
    assert room.used_bytes == kept_count * len(message)
    assert not aside.is_full
    assert aside.give_back() == message * kept_count
    assert room.used_bytes == 0


@pytest.mark.parametrize("packet", KEPT[1:])
def test_no_more_is_read_where_there_is_no_room_for_what_must_not_be_lost(packet):
    aside = make()
    first = publish(b"t", b"x" * (KEPT_BYTES_MAX - 20))
    aside.take(first)
    while not aside.is_full:
        aside.take(packet)
        first += packet
    assert aside.take(PING) == first + PING  # from a client that has left
    assert aside.is_over


def test_rest_of_a_dropped_message_is_dropped_afterwards():
    aside = make()
    large = publish(b"t", b"x" * 2 * KEPT_BYTES_MAX)
    assert aside.take(large[:100]) == b""
    assert aside.dropped_count == 1
    assert aside.give_back() == b""
    assert aside.has_left
    assert aside.take(large[100:-1]) == b""
    assert aside.take(large[-1:] + PING) == PING
    assert not aside.has_left


def test_all_connections_together_have_a_bound():
    room = AsideRoom()
    room.used_bytes = ALL_BYTES_MAX - 10
    aside = make(room)
    aside.take(publish(b"t", b"x"))
    assert not aside.dropped_count
    aside.take(publish(b"t", b"x"))
    assert aside.dropped_count == 1
    aside.take(publish(b"t", b"x", qos=1, packet_id=1))
    assert aside.is_full


@pytest.mark.parametrize(
    "end", [mqtt.DISCONNECT, b"\x32\xff\xff\xff\xff\x01", b"\x30\xff\xff\xff\x7f", b"\x40\x05" + b"0" * 5]
)
def test_who_leaves_or_breaks_a_rule_is_not_held(end):
    aside = make()
    aside.take(KEPT[0])
    assert aside.take(PING + KEPT[1] + end + KEPT[2]) == PING + KEPT[0] + KEPT[1] + end + KEPT[2]
    assert aside.is_over


def test_size_of_a_packet_is_known_once_its_length_is_there():
    packet = publish(b"t", b"x" * 300)
    assert [size_at(packet[:end], 0) for end in (1, 2, 3)] == [0, 0, len(packet)]
    assert size_at(b"??" + packet, 2) == len(packet)

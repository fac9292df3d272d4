from __future__ import annotations

from hypothesis import given, strategies as st

from gateway.bridges import packets
from gateway.mqtt.properties import Property
from tests.support import mqtt


def test_packets_are_those_of_a_client_of_version_5():
    made = packets.connect(b"$bridge/x", 7)
    assert made.data == mqtt.connect_5(
        b"$bridge/x", clean=False, keep_alive_s=0, properties=b"\x08\x11\xff\xff\xff\xff\x21\0\7"
    )
    assert packets.subscribe(3, b"a/#", 1, 2) == mqtt.subscribe_5(3, (b"a/#", 0x1D), properties=b"\x02\x0b\x02")
    assert packets.unsubscribe(4, b"a") == mqtt.unsubscribe_5(4, b"a")
    assert packets.publish(b"t", b"b", 1, 9, [], is_retained=True) == mqtt.publish_5(
        b"t", b"b", qos=1, packet_id=9, retain=True
    )
    assert packets.acknowledge(1, 5) == mqtt.puback(5)
    assert packets.acknowledge(2, 5) == mqtt.pubrec(5)
    assert packets.complete(5) == mqtt.pubcomp(5)


@given(st.binary(max_size=400), st.integers(0, 2), st.booleans(), st.lists(st.integers(1, 50), max_size=20))
def test_what_is_published_is_read_again_in_any_pieces(body, qos, is_retained, sizes):
    items = [(Property.CONTENT_TYPE, b"x"), (Property.USER, (b"k", b"v")), (Property.USER, (b"k", b"w"))]
    data = packets.publish(b"a/b", body, qos, 3, items, is_retained=is_retained) + mqtt.PINGRESP
    buffer, found = bytearray(), []
    for size in [*sizes, len(data)]:
        buffer += data[:size]
        data = data[size:]
        found += packets.cut(buffer)
    assert (len(found), bytes(buffer)) == (2, b"")
    read = packets.read_delivery(found[0])
    assert (read.topic, read.body, read.qos, read.is_retained) == (b"a/b", body, qos, is_retained)
    assert read.packet_id == (3 if qos else 0)
    assert list(read.properties.items()) == items


def test_answers_tell_their_reason():
    assert packets.read_answer(mqtt.puback(7)) == (7, 0)
    assert packets.read_answer(b"\x40\x03\0\7\x97") == (7, 0x97)
    assert packets.read_answer(mqtt.suback_5(8, 1, 0x87)) == (8, 0x87)
    assert packets.reason_of(b"\x20\x03\0\x87\0") == 0x87
    assert packets.reason_of(b"\xe0\x00") == 0
    assert packets.reason_of(b"\xe0\x01\x8b") == 0x8B

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from gateway.mqtt import packets
from gateway.mqtt.errors import MalformedPacketError, MqttError, ProtocolViolationError
from gateway.mqtt.packets import (
    CONNECT_BYTES_MAX,
    Disconnect,
    Subscribe,
    Unsubscribe,
    decode_connect,
    decode_packet,
    encode_connack,
    encode_length,
    encode_suback,
    encode_unsuback,
)
from gateway.mqtt.reason_codes import SUBSCRIBE_FAILURE, ConnectCode
from tests.support import mqtt


def body_of(data):
    (packet,) = mqtt.cut(data)
    return packet[1 + len(mqtt.length(len(packet))) :] if len(packet) < 128 else packet[3:]


def test_largest_connect_is_within_the_limit():
    full = b"x" * 65_535
    data = mqtt.connect(full, will=(b"t", full, 0, False), user=full, password=full, protocol=b"MQIsdp", level=3)
    assert len(data) <= CONNECT_BYTES_MAX + 5
    assert decode_connect(data[4:]).password == full


def test_user_without_password_is_allowed():
    connect = decode_connect(body_of(mqtt.connect(user=b"u")))
    assert (connect.user, connect.password) == (b"u", None)


def test_empty_fields_differ_from_absent_ones():
    connect = decode_connect(body_of(mqtt.connect(b"", user=b"", password=b"")))
    assert (connect.client_id, connect.user, connect.password, connect.will) == (b"", b"", b"", None)


def test_subscribe_and_unsubscribe_keep_the_order_of_filters():  # MQTT-3.8.4-4
    for packet, filters in (
        (decode_packet(8, body_of(mqtt.subscribe(7, (b"b", 2), (b"a/+", 0)))), [(b"b", 2), (b"a/+", 0)]),
        (decode_packet(10, body_of(mqtt.unsubscribe(7, b"b", b"a/+"))), [b"b", b"a/+"]),
    ):
        assert isinstance(packet, Subscribe | Unsubscribe)
        assert packet.packet_id == 7
        assert list(packet.filters) == filters


def test_ping_and_disconnect_have_no_body():
    assert decode_packet(packets.DISCONNECT, b"") == Disconnect()
    for packet_type in (packets.PINGREQ, packets.DISCONNECT):
        with pytest.raises(MalformedPacketError):
            decode_packet(packet_type, b"\0")


@pytest.mark.parametrize("packet_type", [2, 5, 6, 7, 9, 11, 13])
def test_packets_that_a_client_may_not_send_are_violations(packet_type):
    with pytest.raises(ProtocolViolationError):
        decode_packet(packet_type, b"\0\1")


def test_answers_have_the_bytes_of_the_protocol():
    assert encode_connack(ConnectCode.ACCEPTED, session_present=True) == b"\x20\x02\x01\x00"
    assert encode_connack(ConnectCode.NOT_AUTHORIZED, session_present=False) == b"\x20\x02\x00\x05"
    assert encode_suback(258, [0, 1, SUBSCRIBE_FAILURE]) == b"\x90\x05\x01\x02\x00\x01\x80"
    assert encode_suback(1, [0] * 200) == mqtt.suback(1, *[0] * 200)
    assert encode_unsuback(258) == b"\xb0\x02\x01\x02"


@given(st.integers(0, 268_435_455))
def test_length_is_at_most_four_bytes(size):
    assert encode_length(size) == mqtt.length(size)
    assert len(encode_length(size)) <= 4


@given(st.sampled_from([1, 8, 10, 12, 14, 3, 0, 15]), st.binary(max_size=60))
def test_any_body_is_a_packet_or_an_mqtt_error(packet_type, body):
    with suppress(MqttError):
        packet = decode_packet(packet_type, body)
        if isinstance(packet, Subscribe | Unsubscribe):
            assert list(packet.filters)

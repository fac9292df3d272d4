from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from gateway.mqtt import packets
from gateway.mqtt.errors import MalformedPacketError, MqttError, ProtocolViolationError
from gateway.mqtt.packets import (
    CONNECT_BYTES_MAX,
    Auth,
    Disconnect,
    Subscribe,
    Unsubscribe,
    decode_connect,
    decode_packet,
)
from gateway.mqtt.properties import NO_PROPERTIES, Property, encode_properties
from gateway.mqtt.reason_codes import ReasonCode
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


@pytest.mark.parametrize("packet_type", [2, 5, 6, 7, 9, 11, 13, 15])
def test_packets_that_a_client_may_not_send_are_violations(packet_type):
    with pytest.raises(ProtocolViolationError):
        decode_packet(packet_type, b"\0\1")


@given(st.sampled_from([1, 8, 10, 12, 14, 3, 0, 15]), st.binary(max_size=60), st.sampled_from([3, 4, 5]))
def test_any_body_is_a_packet_or_an_mqtt_error(packet_type, body, level):
    with suppress(MqttError):
        packet = decode_packet(packet_type, body, level)
        if isinstance(packet, Subscribe | Unsubscribe):
            assert list(packet.filters)


def connect_5(*items, flags=2, payload=b"\0\1c", properties=None):
    block = encode_properties(items) if properties is None else properties
    return mqtt.text(b"MQTT") + bytes((5, flags)) + b"\0\x3c" + block + payload


def test_connect_of_version_5_has_properties():
    items = [(Property.SESSION_EXPIRY, 7), (Property.RECEIVE_MAX, 9), (Property.USER, (b"k", b"v"))]
    connect = decode_connect(connect_5(*items))
    assert (connect.level, connect.client_id, connect.is_clean) == (5, b"c", True)
    assert connect.properties.numbers == {Property.SESSION_EXPIRY: 7, Property.RECEIVE_MAX: 9}
    assert connect.properties.users == ((b"k", b"v"),)


def test_will_of_version_5_has_properties_of_its_own():
    will = encode_properties([(Property.WILL_DELAY, 3), (Property.CONTENT_TYPE, b"text/plain")])
    connect = decode_connect(connect_5(flags=0x06, payload=b"\0\1c" + will + mqtt.text(b"w") + mqtt.text(b"x")))
    assert connect.will is not None
    assert (connect.will.topic, connect.will.body, connect.properties) == (b"w", b"x", NO_PROPERTIES)
    assert connect.will.properties.number(Property.WILL_DELAY, 0) == 3


def test_password_without_user_is_allowed_in_version_5():  # section 3.1.2.9
    connect = decode_connect(connect_5(flags=0x42, payload=b"\0\1c" + mqtt.text(b"p")))
    assert (connect.user, connect.password) == (None, b"p")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (connect_5(properties=b"\x05\x21\0\1"), ReasonCode.MALFORMED_PACKET),  # cut off
        (connect_5(properties=b"\x03\x21\0\0"), ReasonCode.PROTOCOL_ERROR),  # receive maximum 0
        (connect_5(properties=b"\x06\x21\0\1\x21\0\1"), ReasonCode.PROTOCOL_ERROR),  # twice
        (connect_5(properties=b"\x02\x01\0"), ReasonCode.MALFORMED_PACKET),  # belongs to PUBLISH
        (connect_5(properties=b"\x02\x17\2"), ReasonCode.PROTOCOL_ERROR),  # neither 0 nor 1
        (connect_5((Property.AUTH_DATA, b"x")), ReasonCode.PROTOCOL_ERROR),  # no method
    ],
)
def test_bad_connect_of_version_5_has_its_reason(body, code):
    with pytest.raises(MqttError) as caught:
        decode_connect(body)
    assert caught.value.code == code


def test_subscribe_of_version_5_has_options_and_an_identifier():
    body = b"\0\7" + encode_properties([(Property.SUBSCRIPTION_ID, 300)]) + mqtt.text(b"a/#") + b"\x2e"
    packet = decode_packet(8, body, 5)
    assert isinstance(packet, Subscribe)
    assert (packet.packet_id, packet.identifier, list(packet.filters)) == (7, 300, [(b"a/#", 0x2E)])


@pytest.mark.parametrize(
    ("topic_filter", "options", "code"),
    [
        (b"a", 0x03, ReasonCode.MALFORMED_PACKET),
        (b"a", 0x40, ReasonCode.MALFORMED_PACKET),
        (b"a", 0x30, ReasonCode.PROTOCOL_ERROR),
        (b"$share/g/a", 0x04, ReasonCode.PROTOCOL_ERROR),
        (b"a/#/b", 0x00, ReasonCode.TOPIC_FILTER_INVALID),
    ],
)
def test_bad_filters_and_options_have_their_reason(topic_filter, options, code):
    packet = decode_packet(8, b"\0\7\0" + mqtt.text(topic_filter) + bytes((options,)), 5)
    assert isinstance(packet, Subscribe)
    with pytest.raises(MqttError) as caught:
        list(packet.filters)
    assert caught.value.code == code


def test_unsubscribe_of_version_5_has_properties():
    packet = decode_packet(10, b"\0\7" + encode_properties([(Property.USER, (b"a", b"b"))]) + mqtt.text(b"x"), 5)
    assert isinstance(packet, Unsubscribe)
    assert list(packet.filters) == [b"x"]


def test_disconnect_of_version_5_may_say_why():
    assert decode_packet(14, b"", 5) == Disconnect()
    assert decode_packet(14, b"\4", 5) == Disconnect(4)
    packet = decode_packet(14, b"\0" + encode_properties([(Property.SESSION_EXPIRY, 5)]), 5)
    assert isinstance(packet, Disconnect)
    assert packet.properties.number(Property.SESSION_EXPIRY, 0) == 5
    for body in (b"\x8e", b"\0\0x", b"\0\2\x12\0"):  # a server's reason; a byte too many; a server's property
        with pytest.raises(MqttError):
            decode_packet(14, body, 5)


def test_auth_names_its_method():
    packet = decode_packet(15, b"\x18" + encode_properties([(Property.AUTH_METHOD, b"M")]), 5)
    assert isinstance(packet, Auth)
    assert packet.properties.texts == {Property.AUTH_METHOD: b"M"}
    for body, level in ((b"\x18\0", 5), (b"\x01", 5), (b"", 4)):
        with pytest.raises(MqttError):
            decode_packet(15, body, level)

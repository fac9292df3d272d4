from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from gateway.mqtt import properties
from gateway.mqtt.errors import MalformedPacketError, MqttError, ProtocolViolationError
from gateway.mqtt.properties import (
    NO_PROPERTIES,
    OF_ACK,
    OF_AUTH,
    OF_CONNECT,
    OF_DISCONNECT,
    OF_PUBLISH,
    OF_SUBSCRIBE,
    OF_UNSUBSCRIBE,
    OF_WILL,
    PROPERTIES_BYTES_MAX,
    Property,
    decode_properties,
    encode_properties,
    read_varint,
    write_varint,
)
from tests.support import mqtt

ALL = frozenset(Property)
SETS = [OF_CONNECT, OF_WILL, OF_PUBLISH, OF_SUBSCRIBE, OF_UNSUBSCRIBE, OF_ACK, OF_DISCONNECT, OF_AUTH, ALL]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20).map(str.encode)


def values(name):
    kind = properties._KIND_OF[name].name
    if name in properties._FLAGS:
        return st.integers(0, 1)
    if kind in {"TEXT", "BINARY"}:
        return texts if kind == "TEXT" else st.binary(max_size=20)
    if kind == "PAIR":
        return st.tuples(texts, texts)
    return st.integers(1, {"BYTE": 255, "U16": 65_535, "U32": 2**32 - 1, "VARINT": 268_435_455}[kind])


@st.composite
def items(draw):
    single = draw(st.lists(st.sampled_from([name for name in Property if name != Property.USER]), unique=True))
    made = [(name, draw(values(name))) for name in single]
    for _ in range(draw(st.integers(0, 4))):
        made.insert(draw(st.integers(0, len(made))), (Property.USER, draw(values(Property.USER))))
    return made


@given(items(), st.binary(max_size=3))
def test_properties_come_back_as_they_were(made, tail):
    encoded = encode_properties(made)
    found, end = decode_properties(b"x" + encoded + tail, 1, ALL)
    assert end == 1 + len(encoded)
    single = {name: value for name, value in made if name != Property.USER}
    assert found.numbers | found.texts == single
    assert list(found.users) == [value for name, value in made if name == Property.USER]


@given(items(), st.sampled_from(SETS))
def test_only_what_a_packet_may_carry_is_taken(made, allowed):
    encoded = encode_properties(made)
    if all(name in allowed for name, _ in made):
        decode_properties(encoded, 0, allowed)
    else:
        with pytest.raises(MalformedPacketError):
            decode_properties(encoded, 0, allowed)


@given(st.binary(max_size=60), st.sampled_from(SETS))
def test_any_bytes_are_properties_or_an_mqtt_error(body, allowed):
    with suppress(MqttError):
        _, end = decode_properties(body, 0, allowed)
        assert 0 < end <= len(body)


@given(items(), st.data())
def test_properties_that_are_cut_off_are_malformed(made, data):
    encoded = encode_properties(made)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(MalformedPacketError):
        decode_properties(encoded[:cut], 0, ALL)


@pytest.mark.parametrize("name", [name for name in Property if name != Property.USER])
def test_a_property_that_is_there_twice_is_a_violation(name):  # MQTT-3.1.2-30 and its like
    value = 1 if properties._KIND_OF[name].name in {"BYTE", "U16", "U32", "VARINT"} else b"x"
    with pytest.raises(ProtocolViolationError):
        decode_properties(encode_properties([(name, value), (name, value)]), 0, ALL)


@pytest.mark.parametrize(
    "name", [Property.RECEIVE_MAX, Property.PACKET_BYTES_MAX, Property.TOPIC_ALIAS, Property.SUBSCRIPTION_ID]
)
def test_numbers_that_may_not_be_0(name):
    with pytest.raises(ProtocolViolationError):
        decode_properties(encode_properties([(name, 0)]), 0, ALL)


@pytest.mark.parametrize("text", [b"\xff", b"a\0b", b"\xed\xa0\x80", b"\xc0\xaf"])
def test_texts_are_clean_utf_8(text):  # MQTT-1.5.4-1, MQTT-1.5.4-2
    for item in ((Property.REASON, text), (Property.USER, (text, b"")), (Property.USER, (b"", text))):
        with pytest.raises(MalformedPacketError):
            decode_properties(encode_properties([item]), 0, ALL)


def test_no_properties_are_one_object():
    assert decode_properties(b"\0rest", 0, ALL) == (NO_PROPERTIES, 1)


def test_properties_are_bounded_in_bytes():
    full = (b"k" * 30_000, b"v" * 30_000)
    decode_properties(encode_properties([(Property.USER, full)]), 0, ALL)
    with pytest.raises(MalformedPacketError):
        decode_properties(encode_properties([(Property.USER, full)] * 2), 0, ALL)
    assert PROPERTIES_BYTES_MAX < 2 * 60_000


@given(st.integers(0, 268_435_455))
def test_variable_byte_integers_are_as_short_as_they_can_be(value):  # MQTT-1.5.5-1
    encoded = write_varint(value)
    assert encoded == mqtt.length(value) or value == 0
    assert read_varint(encoded, 0) == (value, len(encoded))
    assert len(encoded) <= 4


@pytest.mark.parametrize("encoded", [b"\x80\x00", b"\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80", b"", b"\x80"])
def test_variable_byte_integers_that_are_none(encoded):
    with pytest.raises(MalformedPacketError):
        read_varint(encoded, 0)

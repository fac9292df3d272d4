from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.properties import decode_properties as decode_record
from gateway.mqtt import publish_properties
from gateway.mqtt.errors import MqttError
from gateway.mqtt.properties import OF_PUBLISH, Property, decode_properties, write_varint
from gateway.mqtt.publish_properties import PROPERTIES_BYTES_MAX, SOUND, PublishProperties
from tests.support.mqtt_properties import block_of, stored


@given(st.binary(max_size=80))
def test_a_block_is_sound_exactly_where_the_tables_say_so(block):
    reader = PublishProperties()
    try:
        expected, _ = decode_properties(write_varint(len(block)) + block, 0, OF_PUBLISH)
    except MqttError:
        expected = None
    is_sound = reader.read(block, 0, len(block)) == SOUND
    if expected is None:
        assert not is_sound
    elif is_sound:
        assert reader.alias == expected.number(Property.TOPIC_ALIAS, 0)
        assert reader.expiry_s == expected.number(Property.MESSAGE_EXPIRY, -1)


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        (b"\x23\0\0", publish_properties.NO_ALIAS),
        (b"\x01\x02", publish_properties.VIOLATION),
        (b"\x01\x01\x01\x01", publish_properties.VIOLATION),
        (b"\x0b\x01", publish_properties.VIOLATION),
        (b"\x08\0\x01#", publish_properties.VIOLATION),
        (b"\x08\0\0", publish_properties.VIOLATION),
        (b"\x11\0\0\0\1", publish_properties.MALFORMED),
        (b"\x26\0\1a", publish_properties.MALFORMED),
        (b"\x26\0\1\xff\0\0", publish_properties.MALFORMED),
        (b"\x03\0\1\0", publish_properties.MALFORMED),
        (b"\x02\0\0\0", publish_properties.MALFORMED),
        (b"\xff", publish_properties.MALFORMED),
        (b"\x09\xff\xff" + bytes(PROPERTIES_BYTES_MAX), publish_properties.TOO_LARGE),
    ],
)
def test_faults_are_told_apart(block, fault):
    assert PublishProperties().read(block, 0, len(block)) == fault


def test_other_doors_see_what_is_plain_under_its_own_name():
    extra = stored(
        block_of(
            (Property.USER, (b"unit", b"kW")),
            (Property.USER, (b"unit", b"MW")),
            (Property.USER, (b"LMQ_TOPIC", b"forged")),
            (Property.USER, (b"a\x01b", b"x")),
            (Property.CONTENT_TYPE, b"text/plain"),
            (Property.CORRELATION, b"\x00\xff7"),
        )
    )
    assert extra == (
        b"CONTENT_TYPE\x01text/plain\x02LMQ_CORRELATION\x01%00%FF7\x02unit\x01kW\x02unit\x01MW\x02"
        b"LMQ_PAIR\x01LMQ_TOPIC=forged\x02LMQ_PAIR\x01a%01b=x\x02"
    )
    assert b"LMQ_TOPIC" not in decode_record(extra)

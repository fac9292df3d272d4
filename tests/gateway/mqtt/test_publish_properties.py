from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core.properties import decode_properties as decode_record
from gateway.mqtt import publish_properties
from gateway.mqtt.errors import MqttError
from gateway.mqtt.properties import (
    OF_PUBLISH,
    Property,
    decode_properties,
    encode_properties,
    write_varint,
)
from gateway.mqtt.publish_properties import PROPERTIES_BYTES_MAX, SOUND, BlockWriter, PublishProperties

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12).map(str.encode)
names = texts | st.sampled_from([b"LMQ_TOPIC", b"CONTENT_TYPE", b"TAGS", b"WAIT", b"a", b"a"])
FIELDS = {
    Property.PAYLOAD_FORMAT: st.integers(0, 1),
    Property.MESSAGE_EXPIRY: st.integers(0, 2**32 - 1),
    Property.CONTENT_TYPE: texts,
    Property.RESPONSE_TOPIC: st.sampled_from([b"a/b", b"\xc3\xa4"]),
    Property.CORRELATION: st.binary(max_size=12),
    Property.TOPIC_ALIAS: st.integers(1, 65_535),
}


@st.composite
def items(draw):
    made = [(name, draw(FIELDS[name])) for name in draw(st.lists(st.sampled_from(list(FIELDS)), unique=True))]
    for pair in draw(st.lists(st.tuples(names, texts), max_size=4)):
        made.insert(draw(st.integers(0, len(made))), (Property.USER, pair))
    return made


def stored(block):
    """Return the properties that a record gets for a block without its length."""
    reader = PublishProperties()
    assert reader.read(b"x" + block, 1, 1 + len(block)) == SOUND
    out = bytearray(PublishProperties.extra_bytes_max(len(block)))
    end = reader.write_extra(b"x" + block, 1 + len(block), out, 0)
    return bytes(out[:end])


def delivered(extra, age_ms=0, identifier=0):
    writer = BlockWriter()
    out = bytearray(BlockWriter.block_bytes_max(len(extra)) + 4)
    end = writer.write(extra, 0, len(extra), age_ms, identifier, out, 0)
    found, after = decode_properties(bytes(out[:end]), 0, OF_PUBLISH | {Property.SUBSCRIPTION_ID})
    assert after == end
    return found


def block_of(*made):
    encoded = encode_properties(made)
    return encoded[len(write_varint(len(encoded))) :] if len(encoded) < 128 else encoded[2:]


@given(items())
def test_properties_come_back_from_the_log_as_they_were_published(made):
    encoded = encode_properties(made)
    expected, after = decode_properties(encoded, 0, OF_PUBLISH)
    head = len(write_varint(after))
    block = encoded[head if len(encoded) - head < 128 else 2 :] if len(encoded) > 128 else encoded[1:]
    found = delivered(stored(block))
    assert found.texts == expected.texts
    assert found.numbers == {k: v for k, v in expected.numbers.items() if k is not Property.TOPIC_ALIAS}
    assert found.users == expected.users


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


def test_expiry_is_counted_down_by_whole_seconds_in_the_log():  # MQTT-3.3.2-6
    extra = stored(block_of((Property.MESSAGE_EXPIRY, 10)))
    for age_ms, left in ((0, 10), (999, 10), (1000, 9), (9999, 1), (10_000, 0)):
        assert delivered(extra, age_ms).number(Property.MESSAGE_EXPIRY, -1) == left
    assert delivered(extra, -1).numbers == {}


def test_subscription_has_its_identifier():
    found = delivered(stored(block_of((Property.USER, (b"a", b"b")))), identifier=268_435_455)
    assert found.number(Property.SUBSCRIPTION_ID, 0) == 268_435_455
    assert found.users == ((b"a", b"b"),)


@given(st.binary(max_size=120))
def test_any_properties_of_a_record_make_a_block_that_clients_take(extra):
    delivered(extra)


def test_property_of_another_door_that_is_no_text_is_left_out():
    assert delivered(b"a\x01\xff\x02b\x01x\x00y\x02c\x01ok\x02").users == ((b"c", b"ok"),)


def test_what_a_producer_of_rocketmq_says_twice_or_wrongly_is_told_once_or_not():
    twice = b"CONTENT_TYPE\x01a\x02LMQ_CONTENT_TYPE\x01b\x02CONTENT_TYPE\x01c\x02LMQ_FORMAT\x011\x02LMQ_FORMAT\x010\x02"
    found = delivered(twice)
    assert (found.texts[Property.CONTENT_TYPE], found.numbers[Property.PAYLOAD_FORMAT]) == (b"a", 1)
    wrong = (
        b"LMQ_RESPONSE_TOPIC\x01a/#\x02LMQ_CONTENT_TYPE\x01%00\x02LMQ_CORRELATION\x01%G0\x02LMQ_RESPONSE_TOPIC\x01b\x02"
    )
    assert list(delivered(wrong).items()) == [(Property.RESPONSE_TOPIC, b"b")]

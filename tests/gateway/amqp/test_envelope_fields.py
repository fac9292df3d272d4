from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gateway.amqp.envelope_fields import EnvelopeFields
from gateway.amqp.property_block import BlockReader
from gateway.amqp.stored_properties import StoredProperties

FIELDS = (
    b"LMQ_TOPIC\x01t\x02LMQ_PROTOCOL\x01mqtt\x02LMQ_TTL_MS\x015000\x02LMQ_CONTENT_TYPE\x01a%01b\x02"
    b"LMQ_RESPONSE_TOPIC\x01a/b\x02LMQ_CORRELATION\x01c%3D7\x02LMQ_FORMAT\x011\x02LMQ_PAIR\x01LMQ_X=%01\x02u\x01v\x02"
)


def test_fields_of_mqtt_are_told_to_amqp():
    found = EnvelopeFields(FIELDS)
    assert found.content_type == b"a\x01b"
    assert found.flags == 0x0700
    assert found.before_time == b"\x03c=7\x03a.b\x045000"
    assert (found.content_encoding, found.after_time, found.timestamp(5)) == (b"", b"", 5)
    assert found.headers == b"\x14x-opt-reply-to-topicS\0\0\0\3a/b\x15x-mqtt-payload-formatb\x01"
    assert found.pair(b"LMQ_X=%01") == b"\x05LMQ_XS\0\0\0\1\x01"


def test_what_only_amqp_has_is_a_property_again():
    found = EnvelopeFields(
        b"x-amqp-priority\x017\x02x-amqp-type\x01t\x02x-amqp-timestamp\x0199\x02x-amqp-user-id\x01root\x02"
        b"x-amqp-content-encoding\x01gzip\x02x-amqp-types\x01ln=\x02x-amqp-other\x01o\x02x-amqp-reply-to\x01q%\x02"
    )
    assert found.flags == 0x0800 | 0x0020 | 0x4000 | 0x0200
    assert (found.content_encoding, found.before_time) == (b"\x04gzip", b"\x07\x02q%")
    assert (found.timestamp(5), found.after_time) == (99, b"\x01t")
    assert b"x-amqp-user-id" not in found.taken
    assert b"x-amqp-other" not in found.taken
    assert found.header(b"n", b"5") == b"\1nl" + bytes(7) + b"\5"
    assert found.header(b"n", b"five") == b"\1nS\0\0\0\4five"
    assert found.header(b"n" * 256, b"5") == b""


@pytest.mark.parametrize(
    "said",
    [b"x-amqp-priority\x01256", b"x-amqp-priority\x01-1", b"x-amqp-timestamp\x01now", b"x-amqp-type\x01" + b"t" * 256],
)
def test_what_is_no_value_of_amqp_stays_a_header(said):
    found = EnvelopeFields(said)
    assert (found.flags, found.taken) == (0, set())


def test_topic_that_is_another_routing_key_is_a_header_only():
    for topic in (b"a.b/c", b"a%2F", b"*", b"t" * 256):
        assert EnvelopeFields(b"LMQ_RESPONSE_TOPIC\x01" + topic).flags == 0


def test_correlation_that_is_no_short_text_is_a_header():
    assert EnvelopeFields(b"LMQ_CORRELATION\x01%FF\x02").headers == b"\x10x-correlation-idx\0\0\0\1\xff"
    assert EnvelopeFields(b"LMQ_CORRELATION\x01" + b"x" * 256 + b"\x02").flags == 0


def test_block_of_such_a_message_is_sound():
    stored = StoredProperties()
    stored.read(FIELDS, 0, len(FIELDS))
    assert stored.has_envelope
    out = bytearray(600 + 5 * len(FIELDS))
    end = stored.write_block(FIELDS, (0, len(FIELDS), 0, 0), 0x4C4D0001, 5_000, out, 0)
    reader = BlockReader()
    reader.read(bytes(out[:end]), 0, end)
    assert reader.ttl_ms == 5_000
    assert bytes(out[reader.correlation_start : reader.correlation_end]) == b"c=7"
    assert bytes(out[reader.content_type_start : reader.content_type_end]) == b"a\x01b"


@given(st.binary(max_size=100))
def test_no_properties_make_it_fail(encoded):
    EnvelopeFields(encoded)
    EnvelopeFields(b"LMQ_CORRELATION\x01" + encoded + b"\x02LMQ_PAIR\x01" + encoded)

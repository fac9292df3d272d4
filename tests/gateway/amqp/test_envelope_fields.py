from __future__ import annotations

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
    assert (found.content_type, found.correlation_id, found.expiration) == (b"a\x01b", b"c=7", b"5000")
    assert found.headers == (
        b"\x14x-opt-reply-to-topicS\0\0\0\3a/b\x15x-mqtt-payload-formatb\x01\x05LMQ_XS\0\0\0\1\x01"
    )


def test_correlation_that_is_no_short_text_is_a_header():
    assert EnvelopeFields(b"LMQ_CORRELATION\x01%FF\x02").headers == b"\x10x-correlation-idx\0\0\0\1\xff"
    assert EnvelopeFields(b"LMQ_CORRELATION\x01" + b"x" * 256 + b"\x02").correlation_id is None


def test_block_of_such_a_message_is_sound():
    stored = StoredProperties()
    stored.read(FIELDS, 0, len(FIELDS))
    assert stored.has_envelope
    out = bytearray(600 + 3 * len(FIELDS))
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

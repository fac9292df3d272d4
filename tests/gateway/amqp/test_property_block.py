from __future__ import annotations

import pytest

from core.properties import decode_properties
from gateway.amqp.errors import AmqpError
from gateway.amqp.property_block import ANYBODY, EXTRA_BYTES_MAX, BlockReader
from gateway.amqp.stored_properties import StoredProperties
from tests.support import amqp

EVERYTHING = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"text": "x", "number": -5, "big": 2**40, "yes": True, "no": False, "deep": {"a": 1}, "float": 1.5},
    "delivery_mode": 2,
    "priority": 3,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "1000",
    "message_id": "m",
    "message_type": "t",
    "user_id": "guest",
    "app_id": "app",
}


def extra(block):
    reader = BlockReader()
    reader.read(block, 0, len(block))
    out = bytearray(EXTRA_BYTES_MAX)
    return decode_properties(out[: reader.write_extra(block, 0, len(block), out, 0)])


def test_what_a_block_says_stands_beside_it_for_other_doors():
    found = extra(amqp.block(**EVERYTHING))
    found.pop(b"LMQ_AMQP")
    assert found == {
        b"CONTENT_TYPE": b"text/plain",
        b"LMQ_TTL_MS": b"1000",
        b"LMQ_CORRELATION": b"c",
        b"LMQ_RESPONSE_TOPIC": b"r",
        b"x-amqp-content-encoding": b"utf-8",
        b"x-amqp-priority": b"3",
        b"x-amqp-message-id": b"m",
        b"x-amqp-type": b"t",
        b"x-amqp-user-id": b"guest",
        b"x-amqp-app-id": b"app",
        b"x-amqp-types": b"lbig=Fdeep=ffloat=tno=bnumber=tyes=",
        b"deep": b'{"a":1}',
        b"float": b"1.5",
        b"text": b"x",
        b"number": b"-5",
        b"big": b"1099511627776",
        b"yes": b"true",
        b"no": b"false",
    }


def test_the_whole_block_travels_beside_them():
    block = amqp.block(**EVERYTHING)
    encoded = b"LMQ_AMQP\x01" + extra(block)[b"LMQ_AMQP"] + b"\x02"
    found = StoredProperties()
    found.read(encoded, 0, len(encoded))
    assert found.amqp_block(encoded) == block


@pytest.mark.parametrize(
    "name", ["LMQ_AMQP", "LMQ_OTHER", "CONTENT_TYPE", "WAIT", "", "a\x01b", "INNER_MULTI_DISPATCH"]
)
def test_headers_that_would_be_mistaken_are_pairs(name):
    found = extra(amqp.block(headers={name: "v", "fine": "v"}))
    assert set(found) == {b"LMQ_AMQP", b"LMQ_PAIR", b"fine"}
    assert found[b"LMQ_PAIR"] == name.encode().replace(b"\x01", b"%01") + b"=v"


@pytest.mark.parametrize("key", ["a/b", "a%2F", "a*", "#", "a+b"])
def test_reply_to_that_is_no_plain_topic_is_told_as_it_is(key):
    found = extra(amqp.block(reply_to=key))
    assert b"LMQ_RESPONSE_TOPIC" not in found
    assert found[b"x-amqp-reply-to"] == key.encode()


def test_priority_that_nobody_chose_is_not_told():
    assert set(extra(amqp.block(priority=0))) == {b"LMQ_AMQP"}


def test_headers_of_the_envelope_are_its_fields_and_come_before_properties():
    headers = {"x-opt-reply-to-topic": "a.b/c", "x-mqtt-payload-format": 1, "x-correlation-id": bytearray(b"\xff")}
    found = extra(amqp.block(headers=headers, reply_to="r", correlation_id="c"))
    found.pop(b"LMQ_AMQP")
    assert found == {b"LMQ_RESPONSE_TOPIC": b"a.b/c", b"LMQ_FORMAT": b"1", b"LMQ_CORRELATION": b"%FF"}


def test_headers_that_do_not_fit_beside_the_block_are_left_in_it():
    block = amqp.block(content_type="t", headers={"large": "x" * 15_000, "small": "y"})
    assert set(extra(block)) == {b"LMQ_AMQP", b"CONTENT_TYPE", b"small"}
    with pytest.raises(AmqpError, match=r"content header of \d+ bytes is too large"):
        extra(amqp.block(headers={"large": "x" * 20_000}))


def test_a_block_cut_short_or_too_long_is_refused():
    block = amqp.block(**EVERYTHING)
    reader = BlockReader()
    for size in range(len(block)):
        with pytest.raises(AmqpError, match="malformed content header"):
            reader.read(block, 0, size)
    with pytest.raises(AmqpError, match="malformed content header"):
        reader.read(block + b"\0", 0, len(block) + 1)
    reader.read(b"__" + block + b"__", 2, len(block) + 2)
    assert reader.delivery_mode == 2


@pytest.mark.parametrize("flags", [b"\x00\x01", b"\x00\x02", b"\xff\xff", b"\x80", b""])
def test_flags_without_a_meaning_are_refused(flags):
    with pytest.raises(AmqpError):
        BlockReader().read(flags, 0, len(flags))


def test_only_the_user_that_is_there_may_be_named():
    block = amqp.block(user_id="me")
    reader = BlockReader()
    reader.read(block, 0, len(block))
    reader.check_user(block, b"me")
    with pytest.raises(AmqpError, match="user_id property set to 'me' but authenticated user was 'you'"):
        reader.check_user(block, b"you")
    reader.check_user(block, ANYBODY)
    with pytest.raises(AmqpError):
        reader.check_user(block, bytes(bytearray(ANYBODY)))  # a user of that name


def test_a_time_to_live_and_copies_are_seen_wherever_they_stand():
    reader = BlockReader()
    for headers, has_copies in (
        ({"CC": []}, True),
        ({"a": 1, "BCC": ["x"], "z": "y"}, True),
        ({"CC2": [], "cc": [], "ACC": [], "C": "", "BC": "", "XCC": "CC"}, False),
        ({"inner": {"CC": ["x"]}}, False),
    ):
        block = amqp.block(headers=headers, expiration="77")
        reader.read(block, 0, len(block))
        assert (reader.has_copies, reader.ttl_ms) == (has_copies, 77)
    block = amqp.block(content_type="x")
    reader.read(block, 0, len(block))
    assert (reader.has_copies, reader.ttl_ms) == (False, -1)

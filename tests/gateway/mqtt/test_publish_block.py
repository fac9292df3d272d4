from __future__ import annotations

from hypothesis import given, strategies as st

from core.properties import DISPATCH_SET, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from gateway.mqtt.properties import OF_PUBLISH, Property, decode_properties, encode_properties, write_varint
from gateway.mqtt.publish_block import BlockWriter, block_bytes_max
from tests.support.mqtt_properties import block_of, delivered, items, stored

HEAD = b"LMQ_TOPIC\x01site/%d\x02LMQ_PROTOCOL\x01mqtt\x02LMQ_CLIENT\x01c\x02"
TAIL = b"%b\x01a,b\x02%b\x017,%%d\x02__CRC32#\x010123456789\x02" % (INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET)
SET_TAIL = b"%b\x01%%d\x02__CRC32#\x010123456789\x02" % DISPATCH_SET
EXTRAS = [
    b"site\x01hall\x02trace\x014bf92f\x02",
    b"site\x01hall\x02trace\x014bf92e\x02",
    b"site\x01hall\x02",
    b"site\x01hall",
    b"LMQ_TTL_MS\x015000\x02site\x01hall\x02",
    b"LMQ_FORMAT\x011\x02site\x01hall\x02LMQ_FORMAT\x010\x02",
    b"LMQ_FORMAT\x010\x02",
    b"LMQ_CORRELATION\x01%00\x02LMQ_PAIR\x01a=b\x02LMQ_PAIR\x01a%%\x02",
    b"other\x01\xff\x02",
    b"LMQ_EXCHANGE\x01e\x02site\x01hall\x02TAGS\x01x\x02",
    b"long\x01" + b"x" * 1500 + b"\x02",
    b"",
]


@st.composite
def records(draw):
    """Give the properties of a record, many of them as those of others."""
    extra = draw(st.sampled_from(EXTRAS) | st.binary(max_size=12))
    ends = [b"", TAIL % draw(st.integers(0, 99)), SET_TAIL % draw(st.integers(0, 99)), draw(st.sampled_from(EXTRAS))]
    return draw(st.sampled_from([b"", HEAD % 1, HEAD % 2])) + extra + draw(st.sampled_from(ends))


def written(writer, record, age_ms, identifier, alias, is_own=False):
    out = bytearray(block_bytes_max(len(record)) + 16)
    end = writer.write(b"xy" + record + b"z", 2, 2 + len(record), age_ms, identifier, out, 0, alias, is_own)
    return bytes(out[:end])


@given(
    st.lists(
        st.tuples(records(), st.sampled_from([-1, 0, 0, 1000, 4999]), st.sampled_from([0, 7, 300]), st.integers(0, 1)),
        max_size=12,
    )
)
def test_what_a_message_says_does_not_depend_on_those_before_it(messages):
    writer = BlockWriter()
    assert [written(writer, *one) for one in messages] == [written(BlockWriter(), *one) for one in messages]


@given(
    st.lists(st.tuples(st.sampled_from(EXTRAS), st.sampled_from([HEAD % 1, HEAD % 2]), st.integers(0, 99)), max_size=9)
)
def test_what_the_log_adds_to_messages_of_the_gateways_doors_is_passed_over(messages):
    writer = BlockWriter()
    for extra, head, number in messages:
        record = head + extra + (b"" if extra[-1:] in {b"", b"\x02"} else b"\x02")
        for tail in (TAIL % number, SET_TAIL % number, b""):
            assert written(writer, record + tail, 0, 0, 0, is_own=True) == written(BlockWriter(), record, 0, 0, 0)


def test_what_a_subscription_adds_is_not_taken_for_what_a_message_says():
    writer = BlockWriter()
    expected = written(writer, EXTRAS[0], 0, 0, 0)
    assert written(writer, b"", 0, 7, 0) == b"\x02\x0b\x07"
    assert written(writer, EXTRAS[0], 0, 0, 0) == expected


def test_messages_that_say_the_same_are_told_the_same_as_often_as_they_come():
    writer = BlockWriter()
    record = EXTRAS[0]
    expected = b"\x26\0\x04site\0\x04hall\x26\0\x05trace\0\x064bf92f"
    for number in (1, 2, 3):
        block = written(writer, HEAD % number + record + TAIL % number, 0, 0, 0)
        assert block == bytes((len(expected),)) + expected


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

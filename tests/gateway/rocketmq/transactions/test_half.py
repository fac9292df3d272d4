from __future__ import annotations

from hypothesis import given, strategies as st

from core.properties import encode_properties
from gateway.rocketmq.transactions.half import (
    DONE_BYTES_MAX,
    DONE_COUNT_MAX,
    IMMUNITY_MAX_MS,
    decode_done,
    done_properties,
    encode_done,
    find_letter,
    read_half,
)

WAITING = {b"REAL_TOPIC": b"T", b"REAL_QID": b"3", b"UNIQ_KEY": b"k", b"PGROUP": b"p", b"TRAN_MSG": b"true"}


def read(**more: bytes):
    return read_half(encode_properties(WAITING | {name.encode(): value for name, value in more.items()}))


def test_a_half_message_says_where_it_goes_and_what_it_is_then():
    half = read(LMQ_LATER=b"%LMQ%a,%LMQ%b", colour=b"red", TAGS=b"t")
    assert (half.topic, half.queue_id, half.names, half.group, half.key) == (
        b"T",
        3,
        (b"%LMQ%a", b"%LMQ%b"),
        b"p",
        b"k",
    )
    expected = {b"UNIQ_KEY": b"k", b"PGROUP": b"p", b"colour": b"red", b"TAGS": b"t"}
    assert half.properties == encode_properties(expected)
    assert (half.space_topic, read(LMQ_FOR=b"a/b").space_topic) == (b"", b"a/b")


def test_a_time_to_be_left_alone_is_bounded_and_one_that_is_none_says_nothing():
    said = {b"60": 60_000, b"0": 0, b"999999999": IMMUNITY_MAX_MS, b"9" * 30: -1, b"-5": -1, b"x": -1, b"": -1}
    assert {text: read(CHECK_IMMUNITY_TIME_IN_SECONDS=text).immunity_ms for text in said} == said


def test_what_names_no_topic_is_no_half_message():
    assert read(REAL_TOPIC=b"") is None
    assert read(REAL_QID=b"x") is None
    assert read_half(b"") is None


@given(st.lists(st.integers(0, 10**17), max_size=DONE_COUNT_MAX))
def test_numbers_that_are_done_with_are_written_as_official_brokers_do_and_read_again(offsets):
    body = encode_done(offsets)
    assert len(body) <= DONE_BYTES_MAX
    assert list(decode_done(body)) == offsets


@given(st.binary(max_size=100))
def test_any_body_of_such_a_record_is_read(body):
    assert all(offset >= 0 for offset in decode_done(body))
    assert list(decode_done(b"1,x,,2,-3,4")) == [1, 2, 4]


def test_a_record_says_by_a_letter_how_each_of_its_half_messages_ended():
    body, letters = encode_done([7, 12, 9]), done_properties(b"crg")
    assert [find_letter(body, letters, offset) for offset in (7, 12, 9, 8)] == [b"c", b"r", b"g", None]
    official = encode_properties([(b"TAGS", b"d")])
    assert [find_letter(body, official, offset) for offset in (12, 8)] == [b"", None]
    assert find_letter(body, done_properties(b"cr"), 7) == b""

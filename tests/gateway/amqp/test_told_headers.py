from __future__ import annotations

from hypothesis import given, strategies as st

from core.properties import decode_properties
from gateway.amqp.field_table import check_table, fixed_size
from gateway.amqp.told_headers import ToldHeaders, escaped, is_storable, is_text, is_topic
from gateway.amqp.value_texts import text_of
from tests.support.amqp_blocks import table


def told(*headers, limit=10_000):
    data = table(headers)
    out = bytearray(limit + 1)
    found = ToldHeaders()
    end = found.write(data, 0, len(data), out, 0, limit)
    assert end <= limit
    return bytes(out[:end])


def test_texts_keep_their_names_order_and_number():
    assert told((b"b", "1"), (b"a", "2"), (b"b", "")) == b"b\x011\x02a\x012\x02b\x01\x02"


def test_what_is_no_text_becomes_one_and_its_type_is_told():
    assert decode_properties(told((b"n=", 7), (b"t", [1]))) == {
        b"n=": b"7",
        b"t": b"[1]",
        b"x-amqp-types": b"ln%3D=At=",
    }


@given(
    st.sampled_from("bBsuIilL"), st.sampled_from((b"\x80" + bytes(7), b"\xff" * 8)) | st.binary(min_size=8, max_size=8)
)
def test_whole_numbers_of_each_type_are_told_to_their_last_digit(letter, raw):
    value = letter.encode() + raw[: fixed_size(ord(letter))]
    data = b"\x01n" + value
    out = bytearray(100)
    end = ToldHeaders().write(data, 0, len(data), out, 0, 99)
    text = text_of(value)[1]
    assert bytes(out[:end]) == b"n\x01" + text + b"\x02x-amqp-types\x01" + letter.encode() + b"n=\x02"


def test_second_header_of_a_field_is_a_header():
    found = told((b"x-opt-reply-to-topic", "a"), (b"x-opt-reply-to-topic", "b"), (b"x-correlation-id", 5))
    assert found.startswith(b"LMQ_RESPONSE_TOPIC\x01a\x02x-opt-reply-to-topic\x01b\x02x-correlation-id\x015\x02")


def test_what_does_not_fit_is_left_out():
    assert told((b"a", "x" * 100), (b"b", "y"), limit=60) == b"b\x01y\x02"


def test_names_and_texts():
    assert escaped("ä=\x01".encode()) == "ä%3D%01".encode()
    assert [is_topic(one) for one in (b"a/b", b"", b"a#", b"+", b"a\n")] == [True, False, False, False, False]
    assert [is_text(one, 0, len(one)) for one in (b"", "ä".encode(), b"\xff", b"\0", b"\2")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert not is_storable(b"LMQ_ANY", 0, 7)
    assert is_storable(b"LMQ", 0, 3)


@given(st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=20) | st.text(max_size=9) | st.integers(-9, 9))))
def test_any_table_is_told_as_properties(headers):
    data = table(headers)
    assert check_table(len(data).to_bytes(4, "big") + data, 0, len(data) + 4) == len(data) + 4
    for piece in told(*headers).split(b"\x02")[:-1]:
        piece.decode()
        assert piece.count(b"\x01") == 1

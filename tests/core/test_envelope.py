from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from core import envelope
from core.envelope import (
    ESCAPED_RATIO_MAX,
    field_code,
    is_plain,
    is_text,
    write_escaped,
    write_escaped_field,
    write_field,
    write_unescaped,
)
from core.properties import RESERVED


def code_of(name):
    return field_code(b"x" + name + b"x", 1, 1 + len(name))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (b"CONTENT_TYPE", envelope.FIELD_CONTENT_TYPE),
        (b"LMQ_CONTENT_TYPE", envelope.FIELD_ESCAPED_CONTENT_TYPE),
        (b"LMQ_TTL_MS", envelope.FIELD_TTL_MS),
        (b"LMQ_FORMAT", envelope.FIELD_FORMAT),
        (b"LMQ_RESPONSE_TOPIC", envelope.FIELD_RESPONSE_TOPIC),
        (b"LMQ_CORRELATION", envelope.FIELD_CORRELATION),
        (b"LMQ_PAIR", envelope.FIELD_PAIR),
        (b"LMQ_ANYTHING_ELSE", envelope.FIELD_HIDDEN),
        (b"TAGS", envelope.FIELD_OTHER),
        (b"unit", envelope.FIELD_OTHER),
        (b"LMQ", envelope.FIELD_OTHER),
        (b"lmq_TOPIC", envelope.FIELD_OTHER),
        (b"", envelope.FIELD_HIDDEN),
    ],
)
def test_fields_are_known_by_their_names(name, code):
    assert code_of(name) == code


def test_names_that_the_log_reserves_are_nobodys_own():
    assert envelope.FIELD_OTHER not in {code_of(name) for name in RESERVED}


@given(st.binary(max_size=60))
def test_bytes_come_back_from_their_escaped_form(data):
    out = bytearray(ESCAPED_RATIO_MAX * len(data) + 60)
    end = write_escaped(data, 0, len(data), 0x80, out, 0)
    escaped = bytes(out[:end])
    assert escaped.isascii()
    assert is_plain(escaped, 0, end)
    assert b"=" not in escaped
    assert len(escaped) <= ESCAPED_RATIO_MAX * len(data)
    after = write_unescaped(escaped, 0, end, out, 0)
    assert bytes(out[:after]) == data


@given(st.binary(max_size=60))
def test_what_was_never_escaped_is_told(data):
    out = bytearray(60)
    end = write_unescaped(data, 0, len(data), out, 0)
    assert -1 <= end <= len(data)
    assert (end == len(data)) == (b"%" not in data)


@given(st.binary(max_size=20))
def test_text_is_what_mqtt_calls_a_string(data):
    try:
        expected = "\0" not in data.decode()
    except UnicodeDecodeError:
        expected = False
    assert is_text(b"x" + data, 1, 1 + len(data)) == expected


letters = st.lists(st.sampled_from([0, 1, 2, 3, 97, 127, 128, 129, 195, 164]), max_size=30).map(bytes)


@given(letters | st.binary(max_size=40))
def test_plain_is_what_has_neither_separator(data):
    assert is_plain(b"\1" + data + b"\2", 1, 1 + len(data)) == (not {1, 2} & set(data))


@given(letters)
def test_text_is_told_from_bytes_wherever_they_stand(data):
    try:
        expected = "\0" not in data.decode()
    except UnicodeDecodeError:
        expected = False
    assert is_text(b"\0" + data + b"\0", 1, 1 + len(data)) == expected


def test_fields_are_written_as_properties():
    out = bytearray(60)
    end = write_field(b"A", b"xvaluex", 1, 6, out, 0)
    end = write_escaped_field(b"B", b"\x01\xff", 0, 2, out, end)
    assert bytes(out[:end]) == b"A\x01value\x02B\x01%01%FF\x02"

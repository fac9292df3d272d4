from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given, strategies as st

from gateway.amqp.field_table import check_value
from gateway.amqp.value_texts import text_of, value_of

SIMPLE = {
    b"t\1": ("t", b"true"),
    b"b\xff": ("b", b"-1"),
    b"B\xff": ("B", b"255"),
    b"s\xff\xfe": ("s", b"-2"),
    b"u\xff\xfe": ("u", b"65534"),
    b"I\xff\xff\xff\xff": ("I", b"-1"),
    b"i\xff\xff\xff\xff": ("i", b"4294967295"),
    b"l" + bytes(7) + b"\5": ("l", b"5"),
    b"T" + bytes(7) + b"\5": ("T", b"5"),
    b"d" + struct.pack(">d", 0.1): ("d", b"0.1"),
    b"f" + struct.pack(">f", 0.5): ("f", b"0.5"),
    b"d" + struct.pack(">d", float("inf")): ("d", b"inf"),
    b"D\2\0\0\0\x96": ("D", b"1.50"),
    b"V": ("V", b""),
    b"S\0\0\0\2ab": ("S", b"ab"),
    b"S\0\0\0\1\xff": ("Y", b"/w=="),
    b"x\0\0\0\2ab": ("x", b"ab"),
    b"x\0\0\0\1\xff": ("X", b"/w=="),
    b"A\0\0\0\3t\1V": ("A", b"[true,null]"),
    b"F\0\0\0\7\1aS\0\0\0\0": ("F", b'{"a":""}'),
}


@pytest.mark.parametrize(("value", "said"), SIMPLE.items())
def test_value_is_a_text_and_again_a_value(value, said):
    assert text_of(value) == said
    assert value_of(*said) == value


@pytest.mark.parametrize(
    ("letter", "text"),
    [
        ("l", b"x"), ("l", b"9" * 30), ("b", b"300"), ("t", b"yes"), ("D", b"NaN"), ("D", b"1e99"), ("A", b"{}"),
        ("F", b"[]"), ("F", b'{"' + b"n" * 256 + b'":1}'), ("A", b"[" * 2_000), ("A", b"[" * 20 + b"]" * 20),
        ("X", b"?"),
        ("V", b"x"), ("?", b""), ("", b""), ("A", b"[99999999999999999999]"), ("A", b"\xff"), ("l", b"9" * 5_000),
    ],
)  # fmt: skip
def test_text_that_is_none_of_its_type_is_no_value(letter, text):
    assert value_of(letter, text) is None


@given(st.sampled_from("tbBsuIilLdfTDVSYxXAF?"), st.binary(max_size=40))
def test_no_text_makes_anything_but_a_sound_value(letter, text):
    value = value_of(letter, text)
    assert value is None or check_value(value, 0, len(value), 0) == len(value)


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3), st.lists))
def test_value_of_json_takes_less_than_five_times_its_text(found):
    text = json.dumps([found], separators=(",", ":"), ensure_ascii=False).encode()
    value = value_of("A", text)
    assert value is None or len(value) < 5 * len(text) + 16

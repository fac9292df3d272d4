from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, strategies as st
from pamqp import decode, encode

from gateway.amqp.field_table import TABLE_DEPTH_MAX, TABLE_FIELDS_MAX, check_table, has_many, read_table, skip_value


def table(entries):
    return struct.pack(">I", len(entries)) + entries


def entry(name, value):
    return bytes((len(name),)) + name + value


def nested(depth, kind=b"F"):
    inner = b""
    for _ in range(depth):
        inner = (entry(b"a", kind) if kind == b"F" else kind) + table(inner)
    return table(inner if kind == b"F" else entry(b"a", inner))


def test_each_type_has_its_size():
    values = [b"t\x01", b"b\x01", b"B\x01", b"s..", b"u..", b"I....", b"i....", b"f....", b"l........"]
    values += [b"L........", b"d........", b"T........", b"D.....", b"V", b"S\0\0\0\1a", b"x\0\0\0\1a"]
    values += [b"A" + table(b"Vt\0"), b"F" + table(entry(b"k", b"V"))]
    data = table(b"".join(entry(b"name", value) for value in values))
    assert check_table(data, 0, len(data)) == len(data)
    for value in values:
        one = table(entry(b"name", value))
        assert check_table(one, 0, len(one)) == len(one)
        if len(value) > 1:
            torn = table(entry(b"name", value[:-1]))
            assert check_table(torn, 0, len(torn)) == -1


@pytest.mark.parametrize("kind", [b"F", b"A"])
def test_nesting_is_bounded(kind):
    good = nested(TABLE_DEPTH_MAX - 2, kind)
    assert check_table(good, 0, len(good)) == len(good)
    deep = nested(TABLE_DEPTH_MAX + 1, kind)
    assert check_table(deep, 0, len(deep)) == -1
    very_deep = nested(10_000, kind)
    assert check_table(very_deep, 0, len(very_deep)) == -1


@pytest.mark.parametrize(
    "data",
    [b"", b"\0\0\0", b"\xff\xff\xff\xff", table(b"\x05ab"), table(b"\xff"), table(entry(b"a", b"Q")), table(b"\x01"),
     table(entry(b"a", b"S\xff\xff\xff\xff")), table(entry(b"a", b"F\x00\x00\x00\x09\x01a")),
     table(entry(b"a", b"A\0\0"))],
)  # fmt: skip
def test_what_is_no_table_is_told(data):
    assert check_table(data, 0, len(data)) == -1


@given(st.binary(max_size=80))
def test_what_passes_can_be_decoded(noise):
    data = table(noise)
    if check_table(data, 0, len(data)) == len(data):
        with contextlib.suppress(ValueError, OverflowError, OSError):  # no UTF-8, moments that no calendar has
            decode.field_table(data)


def read(data):
    assert check_table(data, 0, len(data)) == len(data)
    return {name: (field.kind, field.value) for name, field in read_table(data, 4, len(data)).items()}


def test_fields_are_read_with_the_names_of_their_types():
    inner = entry(b"k", b"V")
    values = [
        (b"t\x01", "bool", True), (b"t\x00", "bool", False), (b"b\xff", "byte", -1), (b"B\xff", "unsignedbyte", 255),
        (b"s\xff\xfe", "short", -2), (b"u\xff\xfe", "unsignedshort", 65_534), (b"I\xff\xff\xff\xff", "signedint", -1),
        (b"i\xff\xff\xff\xff", "unsignedint", 2**32 - 1), (b"l" + b"\xff" * 8, "long", -1),
        (b"L" + bytes(8), "long", 0),
        (b"T" + b"\xff" * 8, "timestamp", 2**64 - 1), (b"f" + struct.pack(">f", 0.5), "float", 0.5),
        (b"d" + struct.pack(">d", 1.25), "double", 1.25), (b"D.....", "decimal", b"....."), (b"V", "void", None),
        (b"S\0\0\0\2\xffa", "longstr", b"\xffa"), (b"x\0\0\0\1a", "binary", b"a"), (b"A" + table(b"V"), "array", b"V"),
        (b"F" + table(inner), "table", inner),
    ]  # fmt: skip
    found = read(table(b"".join(entry(b"%d" % i, value) for i, (value, _, _) in enumerate(values))))
    assert found == {str(i): (kind, value) for i, (_, kind, value) in enumerate(values)}
    text, octets = (read_table(entry(b"a", value), 0, 8)["a"] for value in (b"S\0\0\0\1a", b"x\0\0\0\1a"))
    assert (text.text, octets.text) == ("a", None)


def test_of_equal_names_the_first_counts():
    assert read(table(entry(b"a", b"t\1") + entry(b"a", b"V"))) == {"a": ("bool", True)}


def test_many_fields_are_told_without_being_read():
    fields = entry(b"a", b"V") * TABLE_FIELDS_MAX
    assert not has_many(fields, 0, len(fields))
    assert has_many(fields + entry(b"a", b"V"), 0, len(fields) + 3)
    nest = entry(b"a", b"F" + table(fields * 100))
    assert not has_many(nest, 0, len(nest))


@given(st.binary(max_size=80))
def test_what_passes_can_be_read(noise):
    data = table(noise)
    if check_table(data, 0, len(data)) == len(data):
        found = read_table(data, 4, len(data))
        pos, names = 4, []
        while pos < len(data):
            names.append(data[pos + 1 : pos + 1 + data[pos]].decode(errors="replace"))
            pos = skip_value(data, pos + 1 + data[pos])
        assert list(found) == list(dict.fromkeys(names))


VALUES = st.recursive(
    st.one_of(
        st.text(max_size=9),
        st.integers(-(2**63), 2**63 - 1),
        st.booleans(),
        st.floats(allow_nan=False, width=32),
        st.none(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=5))
def test_whatever_pamqp_writes_passes(value):
    data = encode.field_table(value)
    assert check_table(data + b"tail", 0, len(data) + 4) == len(data)

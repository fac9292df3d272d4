from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given, strategies as st

from core.errors import CorruptRecordError, InvalidNameError
from core.store.dispatch_set import (
    DispatchSets,
    check_light_queue,
    decode_set,
    encode_names,
    encode_varint,
    read_varint,
    varint_size,
)
from core.store.queue_names import QueueNames
from tests.support.store import light


@pytest.fixture
def names(tmp_path):
    names = QueueNames.open(tmp_path / "queues")
    yield names
    names.close()


def body_of(names, offsets):
    encoded = encode_names(names)
    return struct.pack(">III", 1, len(names), len(encoded)) + encoded + b"".join(map(encode_varint, offsets))


def test_short_list_stands_in_the_record(names):
    dispatch = DispatchSets(names, 100).make(light("b", "a", "b"))
    assert not dispatch.is_interned
    assert dispatch.names == light("b", "a")
    assert dispatch.text == b"INNER_MULTI_DISPATCH\x01%LMQ%b,%LMQ%a\x02INNER_MULTI_QUEUE_OFFSET\x01"
    assert [names.key(ref) for ref in dispatch.queue_refs] == light("b", "a")


def test_long_list_is_interned_in_sorted_order(names):
    sets = DispatchSets(names, 100)
    dispatch = sets.make(light(*"zyxwvutsrqponm"))
    assert dispatch.is_interned
    assert dispatch.names == sorted(light(*"zyxwvutsrqponm"))
    assert sets.make(light(*"zyxwvutsrqponm")) is dispatch


def test_empty_list_has_no_text(names):
    dispatch = DispatchSets(names, 0).make([])
    assert (dispatch.count, dispatch.text, dispatch.is_interned) == (0, b"", False)


@pytest.mark.parametrize("name", [b"", b"x", b"%LMQ%", b"%LMQ%a,b", b"%LMQ%a\x01b", b"%LMQ%a\x02"])
def test_names_that_would_break_a_record_are_refused(name):
    with pytest.raises(InvalidNameError):
        check_light_queue(name)


@given(
    st.dictionaries(st.binary(min_size=1, max_size=40), st.integers(0, (1 << 62) - 1), max_size=40),
)
def test_set_decodes_to_its_names_and_offsets(queues):
    keys = sorted(queues)
    decoded, offsets = decode_set(body_of(keys, [queues[key] for key in keys]))
    assert decoded == keys
    assert list(offsets) == [queues[key] for key in keys]


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_refused(body):
    for attempt in (body, struct.pack(">III", 1, 5, 20) + body):
        with contextlib.suppress(CorruptRecordError):
            decode_set(attempt)


def test_cut_set_is_refused():
    body = body_of(light("a", "b"), [1, 300])
    for size in range(len(body)):
        with pytest.raises(CorruptRecordError):
            decode_set(body[:size])


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16_383, 16_384, (1 << 62) - 1])
def test_varint_reads_back(value):
    encoded = encode_varint(value)
    assert read_varint(encoded, 0, len(encoded)) == value
    assert varint_size(value) == len(encoded)
    assert read_varint(encoded, 0, len(encoded) - 1) == -1

"""Key files: what went in is found, from either side, and damage is met by the search that reads it."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import example, given, settings, strategies as st

from core.errors import CorruptRecordError, DiskFullError
from core.message import KEYED_MAX, StoredBatch
from core.store.key_index import TAKEN_MAX, KeyColumns, KeyIndex, hash_key, write_key_index, write_unknown_keys
from core.store.queue_reader import read_record
from core.store.record_codec import Record
from tests.support.crashes import crash_everywhere
from tests.support.files import file_size_limit
from tests.support.records import encode_record

BASE = 7 << 28


def write(path, entries):
    hashes, positions = array("I"), array("i")
    for key, position in entries:
        hashes.append(hash_key(key))
        positions.append(position)
    for _ in write_key_index(path, BASE, hashes, positions):
        pass
    return KeyIndex.open(path)


def find_all(index, key, start=0, end=1 << 31, *, is_back):
    """Return what is found of a key in as many steps as it takes; each looks through some more."""
    out = array("i", bytes(4 * KEYED_MAX))
    found = []
    while start < end:
        count = index.find(hash_key(key), start, end, is_back, out)
        assert (index.seen_from, index.seen_until) != (start, start)
        if is_back:
            assert index.seen_until == end > index.seen_from >= start
            found[:0] = out[:count]
            end = index.seen_from
        else:
            assert index.seen_from == start < index.seen_until <= end
            found += out[:count]
            start = index.seen_until
    return found


words = st.sampled_from([b"a", b"b", b"order42", b"x" * 300, "straße".encode()])
positions = st.lists(st.integers(0, 2**31 - 1), max_size=60).map(sorted)


@given(columns=positions, data=st.data())
@settings(max_examples=80, deadline=None)
def test_what_was_written_is_found_from_either_side(tmp_path_factory, columns, data):
    entries = [(data.draw(words), position) for position in columns]
    index = write(tmp_path_factory.mktemp("keys") / "k", entries)
    assert (index.segment_base, index.is_whole) == (BASE, True)
    start, end = sorted((data.draw(st.integers(0, 1 << 31)), data.draw(st.integers(0, 1 << 31))))
    for key in (b"a", b"order42", b"never"):
        expected = sorted({position for word, position in entries if word == key and start <= position < end})
        assert find_all(index, key, start, end, is_back=True) == expected
        assert find_all(index, key, start, end, is_back=False) == expected
    index.close()


@example(repeats=KEYED_MAX + 5)
@given(repeats=st.integers(1, 3))
@settings(max_examples=5, deadline=None)
def test_a_key_of_many_records_is_found_in_several_steps(tmp_path_factory, repeats):
    entries = [(b"hot", 100 * number) for number in range(KEYED_MAX) for _ in range(2)]
    entries += [(b"hot", 1 << 30)] * repeats  # a record that has a word that often
    entries += [(b"hot", (1 << 30) + 100 * number) for number in range(1, 2 * KEYED_MAX)]
    index = write(tmp_path_factory.mktemp("keys") / "k", entries)
    expected = sorted({position for _, position in entries})
    assert find_all(index, b"hot", is_back=True) == expected
    assert find_all(index, b"hot", is_back=False) == expected


def test_a_file_says_when_a_segment_has_too_many_words(tmp_path):
    for _ in write_unknown_keys(tmp_path / "k", BASE):
        pass
    assert not KeyIndex.open(tmp_path / "k").is_whole


def test_damage_is_found_where_it_is_read(tmp_path):
    path = tmp_path / "k"
    entries = [(b"key%d" % number, number * 91) for number in range(2_000)]
    write(path, entries).close()
    whole = path.read_bytes()
    out = array("i", bytes(4 * KEYED_MAX))
    met = set()
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            index = KeyIndex.open(path)
        except CorruptRecordError:
            met.add(at)
            continue
        for key, position in entries[::40]:
            try:
                count = index.find(hash_key(key), 0, 1 << 31, True, out)
            except CorruptRecordError:
                met.add(at)
            else:
                assert list(out[:count]) == [position]
        index.close()
    assert len(met) > len(whole) // 97 // 2  # fillings, and blocks without one of these keys, are not read
    for size in (0, 10, 50, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptRecordError):
            KeyIndex.open(path)


def test_a_process_that_dies_at_any_step_leaves_a_whole_file_or_none(tmp_path):
    path = tmp_path / "data" / "k"
    path.parent.mkdir()
    entries = [(b"key%d" % number, number * 91) for number in range(200)]
    for _ in crash_everywhere(path.parent, lambda: write(path, entries).close()):
        if path.exists():
            assert find_all(KeyIndex.open(path), b"key77", is_back=True) == [77 * 91]


def test_a_full_disk_leaves_no_file(tmp_path):
    path = tmp_path / "k"
    with file_size_limit(4_096), pytest.raises(DiskFullError):
        write(path, [(b"key%d" % number, number) for number in range(5_000)])
    assert list(tmp_path.iterdir()) == []


def take(*properties):
    """Return the words of records, by their number."""
    columns, batch = KeyColumns(), StoredBatch(1)
    found = []
    for text in properties:
        record = encode_record(Record(b"T", 0, 0, 0, b"b", text), with_crc=False)
        assert read_record(record, batch)
        assert columns.take(batch, 0) == 1
        found.append(list(columns.taken_hashes[: columns.count]))
    return found


def test_words_are_those_of_keys_and_the_unique_key():
    assert take(
        b"KEYS\x01one  two \x02UNIQ_KEY\x01u u\x02",
        b"OTHER_KEYS\x01x\x02KEYS\x01\x02TAGS\x01t\x02",
        b"A\x01b\x02KEYS\x01last",
        b"",
    ) == [[hash_key(b"u u"), hash_key(b"one"), hash_key(b"two")], [], [hash_key(b"last")], []]


def test_the_record_with_most_words_fits():
    text = b"KEYS\x01" + b"a " * 16_000
    (found,) = take(text)
    assert found == [hash_key(b"a")] * 16_000
    assert len(text) // 2 + 2 < TAKEN_MAX

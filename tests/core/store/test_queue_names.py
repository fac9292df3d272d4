"""Queue names: refs, the file, torn tails and damage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from core.errors import CorruptRecordError, DiskFullError, InvalidNameError, QueueLimitError
from core.store.queue_names import HEADER, NAME_BYTES_MAX, QueueNames
from tests.support.crashes import crash_everywhere
from tests.support.files import file_size_limit, fresh_folder

KEYS = [b"%LMQ%a", b"orders/0", b"x", b"%LMQ%mqtt%" + b"f" * 20]


def write(path: Path, keys: list[bytes]) -> bytes:
    names = QueueNames.open(path)
    for key in keys:
        names.intern(key)
    names.write_out()
    names.sync()
    names.close()
    return path.read_bytes()


def put(path: Path, data: bytes) -> None:
    """Put a file there without its copy."""
    path.write_bytes(data)
    path.with_name(path.name + ".copy").unlink(missing_ok=True)


def read(path: Path) -> list[bytes]:
    names = QueueNames.open(path)
    try:
        return [names.key(ref) for ref in range(names.count)]
    finally:
        names.close()


def test_refs_are_given_in_order_of_first_appearance(tmp_path):
    names = QueueNames.open(tmp_path / "queues")
    assert [names.intern(key) for key in [*KEYS, KEYS[1], KEYS[0]]] == [0, 1, 2, 3, 1, 0]
    assert names.count == 4
    assert [names.find(key) for key in [*KEYS, b"none"]] == [0, 1, 2, 3, -1]
    assert [names.key(ref) for ref in range(4)] == KEYS
    names.close()


def test_names_of_some_refs_are_given_at_once(tmp_path):
    names = QueueNames.open(tmp_path / "queues")
    assert names.lines(0, 9, b"") == b""
    keys = [b"a/1", b"a/", b"a/three" * 30, b"b/4", b"a/5\n", b"a", b"a/7"]
    for key in keys:
        names.intern(key)
    for first, end in ((0, 3), (1, 3), (2, 3), (6, 7)):
        assert names.lines(first, end, b"a/") == b"".join(b"\n" + key[2:] for key in keys[first:end])
    for first, end in ((0, 4), (3, 5), (4, 5), (5, 7), (-1, 2), (3, 3), (6, 8), (2, 1)):
        assert names.lines(first, end, b"a/") == b""
    assert names.lines(0, 4, b"") == b"".join(b"\n" + key for key in keys[:4])
    names.close()


def test_names_come_back_from_the_file(tmp_path):
    write(tmp_path / "queues", KEYS)
    names = QueueNames.open(tmp_path / "queues")
    assert [names.find(key) for key in KEYS] == [0, 1, 2, 3]
    assert names.intern(b"new") == 4
    names.write_out()
    names.close()
    assert read(tmp_path / "queues") == [*KEYS, b"new"]


def test_names_that_were_not_written_out_are_not_in_the_file(tmp_path):
    names = QueueNames.open(tmp_path / "queues")
    names.intern(b"a")
    names.write_out()
    names.write_out()
    names.intern(b"b")
    names.close()
    assert read(tmp_path / "queues") == [b"a"]


def test_many_names_keep_apart(tmp_path):
    names = QueueNames.open(tmp_path / "queues")
    keys = [b"%%LMQ%%%d" % n for n in range(30_000)]
    assert [names.intern(key) for key in keys] == list(range(30_000))
    names.write_out()
    names.close()
    again = QueueNames.open(tmp_path / "queues")
    assert [again.find(key) for key in keys] == list(range(30_000))
    assert again.fingerprint(30_000) == names.fingerprint(30_000)
    again.close()


@pytest.mark.parametrize("key", [b"", b"k" * (NAME_BYTES_MAX + 1)])
def test_empty_and_overlong_names_are_refused(tmp_path, key):
    names = QueueNames.open(tmp_path / "queues")
    with pytest.raises(InvalidNameError):
        names.intern(key)
    assert names.intern(b"k" * NAME_BYTES_MAX) == 0
    assert names.find(key) == -1
    names.close()


@pytest.mark.parametrize("ref", [-1, 0])
def test_a_ref_that_was_not_given_has_no_name(tmp_path, ref):
    names = QueueNames.open(tmp_path / "queues")
    with pytest.raises(IndexError):
        names.key(ref)
    with pytest.raises(IndexError):
        names.fingerprint(ref - 1 if ref < 0 else 1)
    names.close()


def test_the_fingerprint_tells_names_and_their_order_apart(tmp_path):
    def fingerprints(keys):
        path = fresh_folder(tmp_path) / "queues"
        write(path, keys)
        names = QueueNames.open(path)
        found = [names.fingerprint(count) for count in range(len(keys) + 1)]
        names.close()
        return found

    one, same, turned = (
        fingerprints([b"a", b"b", b"c"]),
        fingerprints([b"a", b"b", b"d"]),
        fingerprints([b"b", b"a", b"c"]),
    )
    assert one[:3] == same[:3]
    assert one[3] != same[3]
    assert one[0] == turned[0]
    assert all(left != right for left, right in zip(one[1:], turned[1:], strict=True))


def test_a_file_torn_at_any_byte_keeps_the_names_before(tmp_path):
    whole = write(tmp_path / "queues", KEYS)
    path = tmp_path / "torn"
    for size in range(len(whole)):
        put(path, whole[:size])
        found = read(path)
        assert found == KEYS[: len(found)]
        assert len(found) < len(KEYS)
        names = QueueNames.open(path)
        assert names.intern(b"after") == len(found)
        names.write_out()
        names.close()
        assert read(path) == [*found, b"after"]


@pytest.mark.parametrize("tail", [bytes(5), bytes(5_000), b"\xff" * 9_000, b"\x00\x05abcde"])
def test_a_tail_of_anything_else_is_cut_off(tmp_path, tail):
    whole = write(tmp_path / "queues", KEYS)
    put(tmp_path / "queues", whole + tail)
    assert read(tmp_path / "queues") == KEYS
    assert (tmp_path / "queues").read_bytes() == whole


def test_a_reader_leaves_the_file_as_it_is(tmp_path):
    whole = write(tmp_path / "queues", KEYS)
    put(tmp_path / "queues", whole[:-1])
    names = QueueNames.open(tmp_path / "queues", writable=False)
    assert names.count == 3
    names.close()
    assert (tmp_path / "queues").read_bytes() == whole[:-1]


def test_every_flipped_bit_is_found_or_cuts_the_last_name(tmp_path):
    whole = write(tmp_path / "queues", KEYS[:3])
    path = tmp_path / "flipped"
    last = len(whole) - len(KEYS[2]) - 6
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        put(path, flipped)
        if bit // 8 >= last:
            assert read(path) == KEYS[:2]
        elif bit // 8 >= last - 4:  # the CRC that the last name's own covers: both fail
            assert read(path) == KEYS[:1]
        else:
            with pytest.raises(CorruptRecordError):
                read(path)


@given(
    st.lists(st.binary(min_size=1, max_size=40), unique=True, max_size=20),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_damage_never_invents_a_name(tmp_path_factory, keys, data):
    path = tmp_path_factory.mktemp("names") / "queues"
    whole = bytearray(write(path, keys))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, max(len(whole) - 1, 0)))
        if whole:
            whole[at] = data.draw(st.integers(0, 255))
    put(path, whole[: data.draw(st.integers(0, len(whole)))])
    try:
        found = read(path)
    except CorruptRecordError:
        return
    assert found == keys[: len(found)]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "queues"
    names = QueueNames.open(path)
    names.intern(b"a")
    names.write_out()
    before = path.read_bytes()
    refs = [names.intern(b"%0100d" % n) for n in range(100)]
    with file_size_limit(len(before) + 250), pytest.raises(DiskFullError):
        names.write_out()
    assert path.read_bytes() == before
    assert (tmp_path / "queues.copy").read_bytes() == before
    names.write_out()
    names.close()
    assert read(path)[refs[-1]] == b"%0100d" % 99


def test_a_new_file_starts_with_its_header(tmp_path):
    assert write(tmp_path / "queues", []) == HEADER


@pytest.mark.parametrize("damaged", ["queues", "queues.copy"])
def test_a_damaged_file_is_made_good_by_the_other(tmp_path, damaged):
    whole = write(tmp_path / "queues", KEYS)
    for at in range(len(whole)):
        wrong = bytearray(whole)
        wrong[at] ^= 0x11
        (tmp_path / damaged).write_bytes(wrong)
        assert read(tmp_path / "queues") == KEYS
        assert (tmp_path / "queues").read_bytes() == whole
        assert (tmp_path / "queues.copy").read_bytes() == whole


@pytest.mark.parametrize("lost", ["queues", "queues.copy"])
def test_a_missing_or_shorter_file_is_made_good_by_the_other(tmp_path, lost):
    whole = write(tmp_path / "queues", KEYS)
    for size in range(len(whole)):
        (tmp_path / lost).write_bytes(whole[:size])
        assert read(tmp_path / "queues") == KEYS
        assert (tmp_path / lost).read_bytes() == whole
    (tmp_path / lost).unlink()
    assert read(tmp_path / "queues") == KEYS


def test_damage_that_was_made_good_is_told(tmp_path):
    whole = write(tmp_path / "queues", KEYS)
    names = QueueNames.open(tmp_path / "queues")
    assert names.restored_path is None
    names.close()
    for path in (tmp_path / "queues", tmp_path / "queues.copy"):
        path.write_bytes(whole[:20] + b"?" + whole[21:])
        names = QueueNames.open(tmp_path / "queues")
        assert names.restored_path == path
        names.close()


def test_two_damaged_files_are_refused_and_begun_anew_when_the_first_is_gone(tmp_path):
    whole = write(tmp_path / "queues", KEYS)
    for name in ("queues", "queues.copy"):
        (tmp_path / name).write_bytes(whole[:20] + b"?" + whole[21:])
    with pytest.raises(CorruptRecordError):
        read(tmp_path / "queues")
    (tmp_path / "queues").unlink()
    assert read(tmp_path / "queues") == []
    assert (tmp_path / "queues.copy").read_bytes() == HEADER


@pytest.mark.parametrize("size", [0, 30, 81])
def test_a_crash_at_any_step_keeps_the_names_that_were_synced(tmp_path, size):
    folder = tmp_path / "index"
    folder.mkdir()
    path = folder / "queues"
    assert len(write(path, KEYS)) == 81
    os.truncate(folder / "queues.copy", size)  # what the opening makes good, if it must
    seen = []
    for _ in crash_everywhere(folder, lambda: write(path, [b"new-1", b"new-2"])):
        seen.append(read(path))
        assert seen[-1] in (KEYS, [*KEYS, b"new-1", b"new-2"])
        assert (folder / "queues.copy").read_bytes() == path.read_bytes()
    assert seen[0] == KEYS
    assert seen[-1] == [*KEYS, b"new-1", b"new-2"]


def test_no_more_names_are_taken_than_the_limit_and_those_that_are_there_go_on(tmp_path):
    names = QueueNames.open(tmp_path / "queues")
    refs = [names.intern(b"%d" % number) for number in range(3)]
    names.limit(3, b"")
    with pytest.raises(QueueLimitError, match="the limit of 3 names of queues is reached"):
        names.intern(b"new")
    assert [names.intern(b"%d" % number) for number in range(3)] == refs
    assert names.count == 3
    names.close()

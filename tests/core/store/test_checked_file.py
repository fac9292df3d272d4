from __future__ import annotations

from array import array

import pytest

from core.errors import CorruptRecordError
from core.store.checked_file import BLOCK_BYTES, CheckedFile, FileFormat
from core.store.key_index import KeyIndex, write_key_index
from core.store.sealed_index import SealedIndex
from tests.core.store.test_sealed_index import make_head, seal

KIND = FileFormat("test file", b"LMQ-TEST", 3, "QI")


def write(path, data):
    path.write_bytes(data)
    return CheckedFile(path, KIND)


def test_a_header_gives_the_fields_that_it_was_made_of(tmp_path):
    header = KIND.pack(1 << 40, 7)
    assert len(header) == KIND.header_bytes == 28
    assert KIND.unpack(write(tmp_path / "f", header + b"more")) == (1 << 40, 7)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (FileFormat("test file", b"LMQ-ELSE", 3, "QI").pack(1, 2), "not one of this version"),
        (FileFormat("test file", b"LMQ-TEST", 4, "QI").pack(1, 2), "not one of this version"),
        (KIND.pack(1, 2)[:-1] + b"?", "damaged header"),
        (KIND.pack(1, 2).replace(b"\x02", b"\x03"), "damaged header"),
    ],
)
def test_another_header_is_refused_by_the_name_of_its_file(tmp_path, header, reason):
    with pytest.raises(CorruptRecordError, match=f"test file f: {reason}"):
        KIND.unpack(write(tmp_path / "f", header))


def test_a_file_without_a_header_is_refused(tmp_path):
    for size in (0, 27):
        with pytest.raises(CorruptRecordError, match="test file f: too short"):
            write(tmp_path / "f", bytes(size))


def write_keys(path):
    for _ in write_key_index(path, 0, array("I", range(5_000)), array("i", range(5_000))):
        pass
    return KeyIndex.open(path)


def find_all(index):
    out = array("i", bytes(4 * 1_024))
    return [index.find(number, 0, 1 << 31, False, out) for number in range(5_000)]


def read_all(index):
    out = array("i", bytes(4 * 5_000))
    return index.lookup(0, 0, 5_000, out)


@pytest.mark.parametrize(
    ("make", "read"),
    [(write_keys, find_all), (lambda path: seal(path, make_head({0: (0, list(range(5_000)))}, 1)), read_all)],
    ids=["keys", "index"],
)
def test_each_block_of_either_file_is_checked_when_it_is_read(tmp_path, make, read):
    path = tmp_path / "f"
    index = make(path)
    read(index)
    index.close()
    index.close()
    whole = path.read_bytes()
    kind = KeyIndex if isinstance(index, KeyIndex) else SealedIndex
    for at in range(len(whole) - 2 * BLOCK_BYTES, len(whole), BLOCK_BYTES // 2):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        damaged = kind.open(path)
        with pytest.raises(CorruptRecordError, match="f: damaged block"):
            read(damaged)

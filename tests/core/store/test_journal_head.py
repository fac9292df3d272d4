"""The head of a journal: whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from core.errors import DataFolderUnusableError
from core.octets import crc32
from core.store.journal_head import HEAD_BYTES, JournalHead, convert_old, journal_name, pack_head, read_head

PATH = Path("journals/pop")
HEAD = JournalHead("pop", 7, 1_000)


def test_head_comes_back():
    assert read_head(pack_head(HEAD) + b"rest", PATH) == HEAD
    assert len(pack_head(HEAD)) == HEAD_BYTES


def test_all_files_of_a_journal_have_its_name():
    assert [journal_name(PATH.with_name(name)) for name in ("pop", "pop.new", "pop.old-00000000000000000007")] == [
        "pop"
    ] * 3


def test_head_of_another_journal_or_a_later_version_is_refused():
    with pytest.raises(DataFolderUnusableError, match="it is the journal 'pop', not 'other'"):
        read_head(pack_head(HEAD), Path("journals/other"))
    later = bytearray(pack_head(HEAD))
    later[11] = 3
    later[56:60] = (crc32(later, 0, 56)).to_bytes(4, "big")
    with pytest.raises(DataFolderUnusableError, match="version 3"):
        read_head(bytes(later), PATH)


def test_long_name_is_refused():
    with pytest.raises(ValueError, match="28 bytes"):
        pack_head(JournalHead("n" * 29, 0, HEAD_BYTES))


@given(st.integers(0, 8 * HEAD_BYTES - 1))
def test_damaged_head_is_none(bit):
    data = bytearray(pack_head(HEAD))
    data[bit // 8] ^= 1 << bit % 8
    assert read_head(bytes(data), PATH) is None


@given(st.binary(max_size=100))
def test_any_bytes_are_no_head_and_are_not_converted(tmp_path_factory, data):
    assert read_head(data, PATH) is None
    path = tmp_path_factory.mktemp("journal") / "pop"
    path.write_bytes(data)
    convert_old(path)
    assert path.read_bytes() == data

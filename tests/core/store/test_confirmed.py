from __future__ import annotations

import pytest

from core.store.confirmed import FILE_BYTES, Confirmed


def test_reader_sees_what_the_writer_set(tmp_path):
    assert Confirmed.open(tmp_path) is None
    written = Confirmed.create(tmp_path)
    read = Confirmed.open(tmp_path)
    written.set(1 << 40, 1_790_000_000_000)
    assert read.get() == (1 << 40, 1_790_000_000_000)
    assert Confirmed.create(tmp_path).get() == (1 << 40, 1_790_000_000_000)


def test_file_that_says_nothing_sound_says_nothing(tmp_path):
    Confirmed.create(tmp_path).set(5, 6)
    path = tmp_path / "confirmed"
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    assert Confirmed.open(tmp_path).get() is None
    path.write_bytes(b"x")
    Confirmed.create(tmp_path).set(5, 6)
    assert Confirmed.open(tmp_path).get() == (5, 6)


@pytest.mark.parametrize("size", [0, 1, 19, 20, FILE_BYTES - 1, FILE_BYTES + 1])
def test_a_file_of_another_size_is_none(tmp_path, size):
    (tmp_path / "confirmed").write_bytes(bytes(size))
    assert Confirmed.open(tmp_path) is None

from __future__ import annotations

import logging
import struct

import pytest

from core.errors import DiskFullError
from gateway.mqtt.kept_records import COMPACT_RATIO, KeptRecords

RECORD = struct.Struct(">II")
BYTES_MIN = 16 * RECORD.size


class Journal:
    """A journal in memory on a disk that can be full."""

    def __init__(self):
        self.records = []
        self.compacted = None
        self.copied_count = 0
        self.is_full = False

    @property
    def bytes_used(self):
        return len(self.records) * RECORD.size

    @property
    def is_compacting(self):
        return self.compacted is not None

    def _need_room(self):
        if self.is_full:
            self.compacted = None
            raise DiskFullError("numbers")

    def append_many(self, records, size):
        self._need_room()
        pieces = [records[at : at + size] for at in range(0, len(records), size)]
        self.records += pieces
        if self.is_compacting:
            self.compacted += pieces

    def begin_compaction(self):
        self._need_room()
        self.compacted = []

    def append_compacted(self, records, size):
        self._need_room()
        self.compacted.append(records)
        self.copied_count += 1

    def finish_compaction(self):
        self._need_room()
        self.records, self.compacted = self.compacted, None


class Numbers:
    """Numbers by name, as their owner changes and copies them."""

    def __init__(self):
        self.journal = Journal()
        self.now = {}
        self.kept = KeptRecords(
            self.journal,
            record_bytes=RECORD.size,
            compact_bytes_min=BYTES_MIN,
            what="numbers",
            keys=self.now.keys,
            copy=lambda key: self.journal.append_compacted(RECORD.pack(key, self.now[key]), RECORD.size),
        )

    def set(self, key, value):
        is_written = self.kept.write(RECORD.pack(key, value))
        self.now[key] = value
        return is_written

    def replayed(self):
        found = {}
        for record in self.journal.records:
            key, value = RECORD.unpack(record)
            found[key] = value
        return found


def test_a_journal_that_grows_is_compacted_and_says_the_same():
    numbers = Numbers()
    for i in range(5_000):
        numbers.set(i % 7, i)
        assert numbers.replayed() == numbers.now
    assert numbers.journal.bytes_used <= BYTES_MIN * COMPACT_RATIO


def test_a_journal_that_grows_while_it_is_compacted_is_not_compacted_again_and_again():
    numbers = Numbers()
    for i in range(20_000):
        numbers.set(i % 100, i)
    assert numbers.replayed() == numbers.now
    assert numbers.journal.copied_count < 20_000 / COMPACT_RATIO


@pytest.mark.parametrize("full_at", [3, 40])
def test_what_a_full_disk_did_not_take_is_written_later_and_told_once(full_at, caplog):
    numbers = Numbers()
    for i in range(full_at):
        numbers.set(i, i)
    numbers.journal.is_full = True
    with caplog.at_level(logging.WARNING):
        assert not any(numbers.set(i, 1_000) for i in range(5))
    assert [record.getMessage() for record in caplog.records if "numbers" in record.getMessage()][1:] == []
    assert "cannot write down numbers" in caplog.text
    numbers.journal.is_full = False
    assert numbers.set(9_999, 1)
    assert numbers.replayed() == numbers.now


def test_append_says_that_the_disk_is_full():
    numbers = Numbers()
    numbers.journal.is_full = True
    with pytest.raises(DiskFullError):
        numbers.kept.append(RECORD.pack(1, 1))

"""The journal of pop queues gives back what was written, in its order."""

from __future__ import annotations

import pytest

from core.errors import DiskFullError
from core.pop.changes import ACK, DROP, FLOOR, TAKE
from core.pop.journal import COMPACT_BYTES_MIN, PopJournal
from tests.support.stores import MemoryJournal


def replay(journal):
    """Return names and changes as a start finds them."""
    changes = []
    again = PopJournal(journal, list)
    again.replay(lambda *change: changes.append(change))
    return again, changes


@pytest.mark.parametrize("size", [1, 47, 48, 49, 96, 383])
def test_name_of_any_length_comes_back(size):
    journal = MemoryJournal()
    pops = PopJournal(journal, list)
    key = b"q" * size
    assert pops.add_name(key) == 0
    assert pops.add_name(b"other") == 1
    pops.write()
    again, _ = replay(journal)
    assert again.names == {key: 0, b"other": 1}
    assert again.add_name(b"next") == 2


def test_crash_between_the_pieces_of_a_name_leaves_no_name():
    journal = MemoryJournal()
    pops = PopJournal(journal, list)
    pops.add_name(b"q" * 100)
    pops.write()
    journal.records.pop()
    again, _ = replay(journal)
    assert again.names == {}
    assert again.add_name(b"next") == 1


def test_changes_come_back_in_order_and_a_drop_ends_the_name():
    journal = MemoryJournal()
    pops = PopJournal(journal, list)
    number = pops.add_name(b"q")
    pops.changes.put(number, FLOOR, 5, 0, 5)
    pops.changes.add(number, TAKE, 5, 99)
    pops.changes.add(number, TAKE, 6, 99)
    pops.changes.close_run()
    pops.write()
    again, changes = replay(journal)
    assert changes == [(0, FLOOR, 5, 0, 5), (0, TAKE, 5, 2, 99)]
    pops.drop_name(b"q")
    pops.write()
    again, changes = replay(journal)
    assert again.names == {}
    assert changes[-1] == (0, DROP, 0, 0, 0)


def test_name_that_was_dropped_before_it_was_written_does_not_come_back():
    journal = MemoryJournal()
    pops = PopJournal(journal, list)
    pops.add_name(b"q")
    pops.drop_name(b"q")
    pops.write()
    assert replay(journal)[0].names == {}


class FullJournal(MemoryJournal):
    """A journal whose disk is full for a while."""

    is_full = True

    def append_many(self, records, size):
        if self.is_full:
            raise DiskFullError("journals/pop")
        super().append_many(records, size)


def test_full_disk_delays_what_is_written_and_loses_nothing():
    journal = FullJournal()
    pops = PopJournal(journal, list)
    number = pops.add_name(b"q")
    pops.changes.put(number, ACK, 1, 1, 0)
    pops.write()
    pops.changes.put(number, ACK, 2, 1, 0)
    pops.write()
    assert journal.records == []
    journal.is_full = False
    pops.write()
    again, changes = replay(journal)
    assert again.names == {b"q": 0}
    assert changes == [(0, ACK, 1, 1, 0), (0, ACK, 2, 1, 0)]


def test_journal_that_has_grown_is_compacted_to_what_is_live():
    journal = MemoryJournal()

    def snapshot():
        pops.changes.put(0, FLOOR, 7, 0, 7)
        yield 0

    pops = PopJournal(journal, snapshot)
    pops.add_name(b"q")
    for _ in range(COMPACT_BYTES_MIN // 29 // 20_000 + 1):
        for _ in range(20_000):
            pops.changes.put(0, ACK, 1, 1, 0)
        pops._journal.append_many(memoryview(pops.changes.buf)[: pops.changes.used], 24)
        pops.changes.clear()
    pops.write()
    assert journal.compactions == 1
    again, changes = replay(journal)
    assert again.names == {b"q": 0}
    assert changes == [(0, FLOOR, 7, 0, 7)]

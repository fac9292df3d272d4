"""The journal of pop queues gives back what was written, in its order."""

from __future__ import annotations

import pytest

from core.errors import DataFolderUnusableError
from core.pop.changes import ACK, DROP, FLOOR, TAKE
from core.pop.journal import COMPACT_BYTES_MIN, QUEUE_WORK, STEP_WORK_MAX, PopJournal
from tests.support.stores import FullJournal, MemoryJournal


def nothing(_log):
    return iter(())


def replay(journal):
    """Return names and changes as a start finds them."""
    changes = []
    again = PopJournal(journal, nothing)
    again.replay(lambda *change: changes.append(change))
    return again, changes


@pytest.mark.parametrize("size", [1, 47, 48, 49, 96, 383])
def test_name_of_any_length_comes_back(size):
    journal = MemoryJournal()
    pops = PopJournal(journal, nothing)
    key = b"q" * size
    assert pops.add_name(key) == 0
    assert pops.add_name(b"other") == 1
    pops.write()
    again, _ = replay(journal)
    assert dict(again.names.items()) == {key: 0, b"other": 1}
    assert again.add_name(b"next") == 2


def test_crash_between_the_pieces_of_a_name_leaves_no_name():
    journal = MemoryJournal()
    pops = PopJournal(journal, nothing)
    pops.add_name(b"q" * 100)
    pops.write()
    journal.records.pop()
    again, _ = replay(journal)
    assert dict(again.names.items()) == {}
    assert again.add_name(b"next") == 1


def test_changes_come_back_in_order_and_a_drop_ends_the_name():
    journal = MemoryJournal()
    pops = PopJournal(journal, nothing)
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
    assert dict(again.names.items()) == {}
    assert again.dropped == {b"q": 0}
    assert changes[-1] == (0, TAKE, 5, 2, 99)  # that it is dropped is told when another has its name
    pops.add_name(b"q")
    pops.write()
    again, changes = replay(journal)
    assert (dict(again.names.items()), again.dropped) == ({b"q": 1}, {})
    assert changes[-1] == (0, DROP, 0, 0, 0)


def test_of_very_many_that_were_dropped_the_last_are_kept(monkeypatch):
    monkeypatch.setattr("core.pop.journal.DROPPED_MAX", 2)
    journal = MemoryJournal()
    pops = PopJournal(journal, nothing)
    for name in (b"a", b"b", b"c"):
        pops.add_name(name)
        pops.write()
        pops.drop_name(name)
    pops.write()
    again, changes = replay(journal)
    assert again.dropped == {b"b": 1, b"c": 2}
    assert changes == [(0, DROP, 0, 0, 0)]


def test_name_that_was_dropped_before_it_was_written_does_not_come_back():
    journal = MemoryJournal()
    pops = PopJournal(journal, nothing)
    pops.add_name(b"q")
    pops.drop_name(b"q")
    pops.write()
    assert dict(replay(journal)[0].names.items()) == {}


def test_full_disk_delays_what_is_written_and_loses_nothing():
    journal = FullJournal()
    journal.is_full = True
    pops = PopJournal(journal, nothing)
    number = pops.add_name(b"q")
    pops.changes.put(number, ACK, 1, 1, 0)
    pops.write()
    pops.changes.put(number, ACK, 2, 1, 0)
    pops.write()
    assert journal.records == []
    journal.is_full = False
    pops.write()
    again, changes = replay(journal)
    assert dict(again.names.items()) == {b"q": 0}
    assert changes == [(0, ACK, 1, 1, 0), (0, ACK, 2, 1, 0)]


def grow(journal):
    """Let the journal have so many records that a compaction is due."""
    journal.bytes_used += COMPACT_BYTES_MIN


def write_one(pops, offset):
    pops.changes.put(0, ACK, offset, 1, 0)
    pops.write()


class Snapshot:
    """Tells of `count` queues with a floor each, and counts those asked for.

    Args:
        count: How many there are.
        names: Whether each has a name that is to be written down too.
        sizes: How large they are, in turn.
    """

    def __init__(self, count, *, names=False, sizes=(0,)):
        self.count = count
        self.names = names
        self.sizes = sizes
        self.asked = 0

    def __call__(self, log):
        for number in range(self.count):
            self.asked += 1
            log.put(number, FLOOR, 7, 0, 7)
            yield number, b"q%d" % number if self.names else None, self.sizes[number % len(self.sizes)]


def test_journal_that_has_grown_is_compacted_to_what_is_live():
    journal = MemoryJournal()
    pops = PopJournal(journal, Snapshot(1, names=True))
    pops.add_name(b"q0")
    pops.write()
    grow(journal)
    write_one(pops, 3)
    assert journal.compactions == 1
    again, changes = replay(journal)
    assert dict(again.names.items()) == {b"q0": 0}
    assert changes == [(0, FLOOR, 7, 0, 7)]


def test_compaction_goes_on_by_small_steps_and_keeps_what_happens_meanwhile():
    journal = MemoryJournal()
    snapshot = Snapshot(1_000, names=True)
    pops = PopJournal(journal, snapshot)
    for number in range(1_000):
        pops.add_name(b"q%d" % number)
    pops.write()
    grow(journal)
    steps = []
    while not journal.compactions:
        before = snapshot.asked
        write_one(pops, len(steps))
        steps.append(snapshot.asked - before)
        pops.write()
        assert snapshot.asked - before == steps[-1], "nothing was written, so nothing is due"
    assert max(steps) <= 4
    assert len(steps) < 300
    again, changes = replay(journal)
    assert len(again.names) == 1_000
    assert [first for _, kind, first, _, _ in changes if kind == ACK] == list(range(1, len(steps)))


def test_a_large_write_makes_no_large_step():
    journal = MemoryJournal()
    snapshot = Snapshot(10_000, sizes=(0, 1_000))
    pops = PopJournal(journal, snapshot)
    grow(journal)
    for offset in range(0, 200_000, 2):
        pops.changes.put(0, ACK, offset, 1, 0)
    pops.write()
    assert 0 < snapshot.asked <= STEP_WORK_MAX // (QUEUE_WORK + 500) + 2
    assert not journal.compactions


def test_compaction_that_a_full_disk_ended_is_not_begun_again_at_once():
    journal = MemoryJournal()
    pops = PopJournal(journal, Snapshot(1_000))
    grow(journal)
    write_one(pops, 1)
    assert journal.is_compacting
    journal.reopen()  # it is dropped
    write_one(pops, 2)
    write_one(pops, 3)
    assert not journal.is_compacting
    grow(journal)
    while not journal.compactions:
        write_one(pops, 4)


@pytest.mark.parametrize("record", [b"x", bytes(8), bytes(16), bytes(24), b"\0" * 4 + b"\x0a" + bytes(19), bytes(64)])
def test_record_of_another_journal_is_refused_by_its_path(record):
    journal = MemoryJournal()
    journal.append_many(record, len(record))
    with pytest.raises(DataFolderUnusableError, match="journals/memory: no journal of pop queues"):
        replay(journal)

from __future__ import annotations

import random

import pytest

from core.errors import DataFolderUnusableError
from core.pop import lasting_endings as module
from core.pop.endings import Ending
from core.pop.lasting_endings import LastingEndings
from tests.support.stores import FullJournal, MemoryJournal

ONE, OTHER = (b"q", b"one"), (b"q", b"other")
BOOT = 77


def _restart(journal, *, boot=BOOT, now_ms=1_000):
    journal.reopen()
    endings = LastingEndings(journal)
    endings.begin(boot, now_ms)
    return endings


def test_what_ended_is_told_after_a_kill_and_of_the_rest_that_it_was_acknowledged():
    journal = MemoryJournal()
    endings = _restart(journal, now_ms=100)
    endings.note(ONE, [3, 4, 5, 9], 4, "expired", 110)
    endings.note_run(ONE, 10, 12, "queue_full", 120)
    endings.note_run(ONE, 12, 14, "queue_full", 130)
    for each in (endings, _restart(journal)):
        assert each.find(*ONE, 4) == Ending("expired", 110, 110)
        assert each.find(*ONE, 11) == each.find(*ONE, 13) == Ending("queue_full", 120, 130)
        assert each.find(*ONE, 6) is each.find(*OTHER, 4) is None
        assert each.since_ms == 100
        assert each.is_kept(*ONE, 6, 101)
        assert each.is_kept(*OTHER, 6, 101)


def test_a_power_cut_soon_after_a_start_that_a_stop_came_before_is_a_break():
    journal = MemoryJournal()
    _restart(journal, now_ms=100).end()
    journal.sync()  # as it is closed
    _restart(journal, now_ms=200).note_run(ONE, 0, 2, "expired", 210)
    del journal.records[journal.synced_count :]
    again = _restart(journal, boot=BOOT + 1, now_ms=300)
    assert again.since_ms == 300  # of what was stored before, nothing is known


def test_before_it_begins_it_keeps_in_memory_and_writes_nothing():
    journal = MemoryJournal()
    endings = LastingEndings(journal)
    endings.note_run(ONE, 0, 2, "expired", 5)
    assert endings.find(*ONE, 1) == Ending("expired", 5, 5)
    assert not journal.records
    assert endings.since_ms > 1 << 60


@pytest.mark.parametrize("boot", [0, BOOT + 1])
def test_a_start_of_the_machine_that_no_stop_came_before_is_a_break(boot):
    journal = MemoryJournal()
    _restart(journal, boot=boot, now_ms=100).note_run(ONE, 0, 2, "expired", 110)
    other = BOOT + 2 if boot else 0
    again = _restart(journal, boot=other, now_ms=200)
    assert (again.find(*ONE, 1), again.since_ms) == (None, 200)
    again.note_run(ONE, 4, 5, "expired", 210)
    again.end()
    later = _restart(journal, boot=other + 1, now_ms=300)
    assert (later.find(*ONE, 4), later.since_ms) == (Ending("expired", 210, 210), 200)


def test_what_a_reader_is_given_again_counts_from_an_offset_on_for_messages_at_qos_0_alone():
    journal = MemoryJournal()
    endings = _restart(journal)
    endings.note_run(ONE, 0, 6, "queue_full", 5)
    endings.note_run(ONE, 8, 9, "expired", 6)
    endings.note_run(OTHER, 8, 9, "expired", 6)
    endings.trim(ONE, 4)
    for each in (endings, _restart(journal)):
        assert [each.find(*ONE, offset) is None for offset in (3, 4, 8)] == [False, True, True]
        assert each.find(*ONE, 8, is_at_0=True) == Ending("expired", 6, 6)
        assert each.find(*OTHER, 8) is not None


def test_endings_of_single_messages_are_taken_back_and_those_beside_them_stay():
    journal = MemoryJournal()
    endings = _restart(journal)
    endings.note_run(ONE, 0, 6, "queue_full", 5)
    endings.note_run(ONE, 8, 9, "expired", 6)
    endings.note_run(OTHER, 0, 9, "expired", 6)
    endings.take_back(ONE, [1, 2, 4, 7, 8])
    written = len(journal.records)
    endings.take_back(ONE, [2, 4, 7])
    assert len(journal.records) == written  # nothing that counts
    for each in (endings, _restart(journal)):
        assert [offset for offset in range(9) if each.find(*ONE, offset)] == [0, 3, 5]
        assert [each.find(*ONE, offset, is_at_0=True) is None for offset in (4, 7, 8)] == [False, True, False]
        assert all(each.find(*OTHER, offset) for offset in range(9))
    endings = _restart(journal)
    endings.note_run(ONE, 4, 5, "expired", 7)
    for each in (endings, _restart(journal)):
        assert each.find(*ONE, 4) == Ending("expired", 7, 7)


def test_what_is_not_given_again_behind_an_offset_stays_told():
    journal = MemoryJournal()
    endings = _restart(journal)
    endings.note_run(ONE, 0, 6, "queue_full", 5)
    endings.note_run(ONE, 8, 9, "expired", 6)
    endings.trim(ONE, 1, [1, 2, 4, 7, 8])
    for each in (endings, _restart(journal)):
        assert [offset for offset in range(9) if each.find(*ONE, offset)] == [0, 1, 2, 4, 8]


def test_what_is_forgotten_is_said_to_be_not_kept(monkeypatch):
    monkeypatch.setattr(module, "RUNS_MAX", 2)
    monkeypatch.setattr(module, "READERS_MAX", 2)
    journal = MemoryJournal()
    endings = _restart(journal, now_ms=1)
    for first in (0, 10, 20):
        endings.note_run(ONE, first, first + 1, "rejected", 10)
    for each in (endings, _restart(journal)):
        assert (each.find(*ONE, 0), each.is_kept(*ONE, 0, 5), each.is_kept(*ONE, 10, 5)) == (None, False, True)
    endings = _restart(journal)
    for name in (b"a", b"b"):
        endings.note_run((b"q", name), 0, 1, "rejected", 2_000)
    for each in (endings, _restart(journal)):  # the first is forgotten: of it, and of those that never ended anything
        for reader in (ONE, OTHER):
            assert [each.is_kept(*reader, 30, stored_ms) for stored_ms in (1_999, 2_001)] == [False, True]
        assert each.is_kept(b"q", b"a", 0, 5)


def test_runs_of_all_readers_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "ALL_RUNS_MAX", 4)
    endings = _restart(MemoryJournal())
    for name in range(10):
        endings.note((b"q", b"%d" % name), [0, 2], 2, "rejected", 1_000)
    assert endings.readers <= 3


def test_runs_of_readers_that_are_there_already_are_bounded_too(monkeypatch):
    monkeypatch.setattr(module, "ALL_RUNS_MAX", 10)
    journal = MemoryJournal()
    endings = _restart(journal)
    readers = [(b"q", b"%d" % name) for name in range(5)]
    for first in range(0, 20, 2):
        for reader in readers:
            endings.note_run(reader, first, first + 1, "rejected", 1_000)
    for each in (endings, _restart(journal)):
        kept = [(reader, first) for reader in readers for first in range(0, 20, 2) if each.find(*reader, first)]
        assert len(kept) <= 11
        assert (readers[-1], 18) in kept
        assert not each.is_kept(*readers[0], 0, 999)


def test_a_reader_is_forgotten_at_a_moment_that_is_not_too_early_where_those_of_runs_are_not_known(monkeypatch):
    monkeypatch.setattr(module, "READERS_MAX", 1)
    endings = _restart(MemoryJournal(), now_ms=100)
    endings.pass_time(5_000)
    endings.note_run(ONE, 0, 9, "began_unknown", 0)
    endings.note_run(OTHER, 0, 9, "began_unknown", 0)
    assert [endings.is_kept(*ONE, 3, stored_ms) for stored_ms in (4_000, 5_001)] == [False, True]


def test_a_journal_that_was_cut_off_is_a_break():
    journal = MemoryJournal()
    _restart(journal, now_ms=100).note_run(ONE, 0, 2, "expired", 110)
    journal.records.pop()
    journal.is_damaged = True
    again = _restart(journal, now_ms=200)
    assert (again.find(*ONE, 1), again.since_ms) == (None, 200)


def test_a_compaction_that_finds_no_room_costs_nothing_that_is_known():
    journal = FullJournal()
    endings = _restart(journal, now_ms=100)
    journal.bytes_used, journal.begins_none = module.COMPACT_BYTES_MIN + 1, True
    for first in (0, 5):
        endings.note_run(ONE, first, first + 1, "expired", 110)
    for each in (endings, _restart(journal, now_ms=300)):
        assert each.since_ms == 100
        assert [each.find(*ONE, offset) is not None for offset in (0, 5)] == [True, True]


def test_on_a_full_disk_nothing_is_lost_in_memory_and_a_later_start_knows_what_was_stored_since_there_was_room():
    journal = FullJournal()
    endings = _restart(journal, now_ms=100)
    journal.is_full = True
    endings.note_run(ONE, 0, 2, "expired", 110)
    journal.is_full = False
    endings.note_run(ONE, 5, 6, "expired", 200)
    assert endings.find(*ONE, 1) is not None
    again = _restart(journal, now_ms=300)
    assert again.since_ms == 200
    assert again.find(*ONE, 5) is not None


def test_a_record_that_no_such_journal_has_is_refused():
    journal = MemoryJournal()
    journal.append_many(b"\x63abc", 4)
    with pytest.raises(DataFolderUnusableError, match="no journal of endings: it has a record of 4 bytes and kind 99"):
        LastingEndings(journal)


@pytest.mark.parametrize("seed", range(40))
def test_any_history_is_the_same_after_kills_at_any_moment_and_in_the_middle_of_compactions(seed, monkeypatch):
    monkeypatch.setattr(module, "COMPACT_BYTES_MIN", 300)
    monkeypatch.setattr(module, "COMPACT_RATIO", 1)
    monkeypatch.setattr(module, "STEP_READERS", 1)
    monkeypatch.setattr(module, "RUNS_MAX", 5)
    monkeypatch.setattr(module, "READERS_MAX", 6)
    monkeypatch.setattr(module, "ALL_RUNS_MAX", 20)
    chance, journal, now_ms = random.Random(seed), MemoryJournal(), 1
    endings = _restart(journal, now_ms=now_ms)
    readers = [(b"q%d" % (number % 2), b"r%d" % number) for number in range(8)]
    for _ in range(300):
        now_ms += chance.randrange(3)
        reader, first = chance.choice(readers), chance.randrange(40)
        match chance.randrange(12):
            case 0:
                kept = sorted(chance.sample(range(first, first + 20), chance.choice([0, 0, 4])))
                endings.trim(reader, first, kept)
                assert {o for o in range(first, 45) if endings.find(*reader, o)} <= set(kept)
            case 2:
                given = sorted(chance.sample(range(45), 5))
                before = {o for o in range(45) if endings.find(*reader, o)}
                endings.take_back(reader, given)
                after = {o for o in range(45) if endings.find(*reader, o)}
                is_lost = {o for o in before if not endings.is_kept(*reader, o, now_ms + 1)}
                assert after - is_lost == before.difference(given) - is_lost
            case 1:
                before = _all_of(endings, readers)
                endings = _restart(journal, now_ms=now_ms)
                assert _all_of(endings, readers) == before
            case _:
                reason = chance.choice(["expired", "queue_full"])
                endings.note_run(reader, first, first + chance.randrange(4), reason, now_ms)
        assert endings._run_count == sum(len(runs.columns) for runs in endings._kept.values()) // 5
    assert journal.compactions


def _all_of(endings, readers):
    return [
        (
            endings.find(*reader, offset),
            endings.find(*reader, offset, is_at_0=True),
            endings.is_kept(*reader, offset, stored_ms),
        )
        for reader in readers
        for offset in range(45)
        for stored_ms in (0, 50, 150, 250)
    ]

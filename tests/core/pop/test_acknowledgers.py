"""Which consumer acknowledged what is known, as long as there is room for it, and over restarts."""

from __future__ import annotations

from array import array

import pytest

from core.errors import DiskFullError
from core.message import StoredBatch
from core.pop import acknowledgers as kept
from core.pop.acknowledgers import CODE_END, Acknowledgers, NoRows
from core.pop.pop_service import PopService
from tests.support.stores import MemoryJournal, MemoryQueues

READER = b"%LMQ%q", b"g"


class Rows(dict):
    """A table in memory."""

    put = dict.__setitem__
    delete = dict.__delitem__


class CountedRows(Rows):
    """One that counts what is written."""

    puts = 0

    def put(self, key, value):
        self.puts += 1
        self[key] = value


class FullRows(NoRows):
    """A table on a full disk."""

    def put(self, key, value):
        raise DiskFullError("/data")


@pytest.fixture
def noted():
    return Acknowledgers(Rows())


def test_each_message_has_its_consumer(noted):
    one, two = noted.code_of(b"one"), noted.code_of(b"two")
    noted.note(READER, array("q", [4, 1, 2, 9]), 3, one)
    noted.note_run(READER, 5, 8, two)
    found = [noted.find(READER, offset) for offset in range(10)]
    assert found == [b"", b"one", b"one", b"", b"one", b"two", b"two", b"two", b"", b""]
    assert noted.find((b"%LMQ%q", b"h"), 1) == b""


def test_the_last_that_acknowledged_counts(noted):
    noted.note_run(READER, 0, 5, noted.code_of(b"one"))
    noted.note_run(READER, 2, 3, noted.code_of(b"two"))
    assert [noted.find(READER, offset) for offset in (1, 2, 3)] == [b"one", b"two", b"one"]


def test_what_follows_is_one_run(noted):
    code = noted.code_of(b"one")
    for offset in range(100):
        noted.note(READER, array("q", [offset]), 1, code)
    assert noted.tell(READER) == [(0, 100, code)]


def test_nobody_is_not_noted(noted):
    noted.note_run(READER, 0, 5, noted.code_of(b""))
    assert noted.tell(READER) == []


def test_offsets_that_others_may_have_are_forgotten(noted):
    code = noted.code_of(b"one")
    noted.note_run(READER, 0, 5, code)
    noted.note_run(READER, 7, 9, code)
    noted.forget(READER, 3)
    assert noted.tell(READER) == [(0, 3, code)]
    noted.forget(READER)
    assert noted.tell(READER) == []


def test_runs_are_bounded(noted, monkeypatch):
    code = noted.code_of(b"one")
    for offset in range(0, 2 * (kept.RUNS_MAX + 1), 2):
        noted.note_run(READER, offset, offset + 1, code)
    assert len(noted.tell(READER)) <= kept.RUNS_MAX
    assert noted.find(READER, 2 * kept.RUNS_MAX) == b"one"
    assert noted.find(READER, 0) == b""
    monkeypatch.setattr(kept, "READERS_MAX", 2)
    for group in (b"x", b"y"):
        noted.note_run((b"%LMQ%q", group), 0, 1, code)
    assert noted.find(READER, 2 * kept.RUNS_MAX) == b""
    assert noted.find((b"%LMQ%q", b"y"), 0) == b"one"


def test_runs_of_all_readers_together_are_bounded(noted, monkeypatch):
    monkeypatch.setattr(kept, "ALL_RUNS_MAX", 2 * kept.RUNS_MAX)
    code = noted.code_of(b"one")
    readers = [(b"%LMQ%q", group) for group in (b"x", b"y", b"z")]
    for offset in range(0, 2 * kept.RUNS_MAX, 2):
        for reader in readers:
            noted.note_run(reader, offset, offset + 1, code)
    assert sum(len(noted.tell(reader)) for reader in readers) <= 2 * kept.RUNS_MAX
    assert noted.find(readers[-1], 2 * kept.RUNS_MAX - 2) == b"one"


def test_names_are_bounded_and_one_that_is_forgotten_is_nobody(monkeypatch):
    monkeypatch.setattr(kept, "NAMES_MAX", 2)
    rows = Rows()
    noted = Acknowledgers(rows)
    for offset, name in enumerate((b"one", b"two", b"three")):
        noted.note_run(READER, offset, offset + 1, noted.code_of(name))
    assert [noted.find(READER, offset) for offset in range(3)] == [b"", b"two", b"three"]
    assert sorted(rows.values()) == [b"three", b"two"]


def test_more_consumers_than_may_be_known_write_few_rows_and_one_that_goes_on_gets_its_own(monkeypatch):
    monkeypatch.setattr(kept, "NAMES_MAX", 100)
    rows = CountedRows()
    noted = Acknowledgers(rows)
    names = [b"%d" % number for number in range(150)]
    known = [noted.code_of(name) != 0 for _ in range(100) for name in names]
    assert rows.puts <= 100 + len(known) // (kept.PASSED_BY + 1)
    assert known.count(True) > len(known) // 3
    assert len(rows) == 100
    tries = next(number for number in range(1_000) if noted.code_of(b"new"))
    assert tries <= kept.PASSED_BY


def test_name_that_finds_no_room_is_nobody():
    assert Acknowledgers(FullRows()).code_of(b"one") == 0


def test_name_that_is_too_long_is_nobody():
    rows = Rows()
    named = Acknowledgers(rows)
    assert named.code_of(b"n" * kept.NAME_BYTES_MAX)
    assert not named.code_of(b"n" * (kept.NAME_BYTES_MAX + 1))
    assert [len(name) for name in rows.values()] == [kept.NAME_BYTES_MAX]


def test_code_is_no_reason(noted):
    assert 0 < noted.code_of(b"one") < CODE_END
    assert noted.code_of(b"one") == Acknowledgers(Rows()).code_of(b"one")


def take_all(store, journal, rows, by):
    """Take what is there and acknowledge it by turns; return the service."""
    service = PopService(store, journal, consumers=rows)
    queue, batch = service.open(*READER), StoredBatch(8)
    while count := queue.take(batch, 1, 1 << 20, 0, 0):
        name = by[batch.queue_offset[0] % len(by)]
        queue.ack_by(array("q", batch.queue_offset[:count]), count, service.acknowledgers.code_of(name))
    return service


def test_it_is_known_after_a_restart():
    store, journal, rows = MemoryQueues(), MemoryJournal(), Rows()
    store.grow(store.intern_queue(READER[0]), 6)
    service = take_all(store, journal, rows, [b"one", b"two"])
    for _ in range(2):
        assert [service.acknowledgers.find(READER, offset) for offset in range(6)] == [b"one", b"two"] * 3
        assert service.open(*READER).floor == 6
        assert service.endings.find(*READER, 2) is None
        service = PopService(store, journal, consumers=rows)


def test_it_is_known_after_a_compaction(monkeypatch):
    monkeypatch.setattr("core.pop.journal.COMPACT_BYTES_MIN", 100)
    store, journal, rows = MemoryQueues(), MemoryJournal(), Rows()
    store.grow(store.intern_queue(READER[0]), 200)
    take_all(store, journal, rows, [b"one", b"two"])
    service = PopService(store, journal, consumers=rows)
    assert [service.acknowledgers.find(READER, offset) for offset in range(200)] == [b"one", b"two"] * 100
    assert service.open(*READER).floor == 200


def test_group_that_begins_anew_knows_nothing_of_one_before():
    store, journal, rows = MemoryQueues(), MemoryJournal(), Rows()
    store.grow(store.intern_queue(READER[0]), 2)
    service = take_all(store, journal, rows, [b"one"])
    service.drop(*READER)
    service.open(*READER, 2)
    assert service.acknowledgers.find(READER, 1) == b""
    assert PopService(store, journal, consumers=rows).acknowledgers.find(READER, 1) == b""


def test_end_that_is_told_later_counts():
    store, journal, rows = MemoryQueues(), MemoryJournal(), Rows()
    store.grow(store.intern_queue(READER[0]), 3)
    service = take_all(store, journal, rows, [b"one"])
    service.tell_ends(*READER, [1], "session_ended", 7)
    for _ in range(2):
        assert service.endings.find(*READER, 1).reason == "session_ended"
        assert service.endings.find(*READER, 2) is None
        assert service.open(*READER).floor == 3
        service = PopService(store, journal, consumers=rows)

"""The journal of QoS 2."""

from __future__ import annotations

import pytest

from core.errors import DataFolderUnusableError, DiskFullError
from gateway.mqtt import exact
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.inflight import EXACT_COMPLETE, EXACT_RECEIVED, EXACT_SENT
from gateway.mqtt.session import Session
from tests.support.stores import FullJournal, MemoryJournal


def make_session(client_id=b"c" * 100):
    return Session(client_id, b"", is_persistent=True)


def test_journal_is_compacted_to_what_is_known_now(monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 2_000)
    memory = MemoryJournal()
    journal = ExactJournal(memory)
    session = make_session()
    for i in range(1, 2_000):
        journal.note_taken(session, [i], i)
        if i % 100:
            journal.note_released(session, [i])
    assert memory.bytes_used < 20_000
    again = ExactJournal(memory)
    again.load(lambda position: 1)
    found = make_session()
    assert again.choose(lambda name, sent: sent) == {b"c" * 100}
    again.finish_load()
    assert again.take_back(found) == []
    assert found.taken == set(range(100, 2_000, 100))


def test_a_session_that_has_ended_and_is_not_forgotten_yet_is_in_no_compaction(monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 2_000)
    memory = MemoryJournal()
    journal, ended, busy = ExactJournal(memory), make_session(b"ended"), make_session(b"busy")
    journal.note_sent(ended, 3, [(0, 10)])
    ended.open_window(10)
    ended.end()
    for i in range(1, 1_000):
        journal.note_taken(busy, [i], i)
        journal.note_released(busy, [i])
    journal.forget(ended)
    again = ExactJournal(memory)
    again.load(lambda position: 1)
    assert again.choose(lambda name, sent: sent) == set()


def test_what_a_session_that_is_not_loaded_is_in_the_middle_of_outlives_compactions(monkeypatch):
    monkeypatch.setattr(exact, "COMPACT_BYTES_MIN", 2_000)
    memory = MemoryJournal()
    journal, away = ExactJournal(memory), make_session(b"away")
    journal.note_taken(away, [7], 5)
    journal.note_sent(away, 3, [(number, number + 10) for number in range(4)])
    journal.note_received(away, [1])
    journal.note_complete(away, [2])
    for _ in range(3):
        journal = ExactJournal(memory)
        journal.load(lambda position: 1)
        assert journal.choose(lambda name, sent: sent if name == b"away" else None) == {b"away"}
        journal.finish_load()
        busy = make_session(b"busy")
        for i in range(1, 1_000):
            journal.note_taken(busy, [i], i)
            journal.note_released(busy, [i])
    assert memory.bytes_used < 20_000
    assert [(one.number, one.offset, one.state) for one in journal.look(b"away")] == [
        (0, 10, EXACT_SENT),
        (1, 11, EXACT_RECEIVED),
        (2, 12, EXACT_COMPLETE),
        (3, 13, EXACT_SENT),
    ]
    again = make_session(b"away")
    assert [one.number for one in journal.take_back(again)] == [0, 1, 2, 3]
    assert (again.taken, journal.look(b"away")) == ({7}, [])


def test_what_the_journal_has_of_a_session_before_of_the_same_client_is_void():
    memory = MemoryJournal()
    journal = ExactJournal(memory)
    journal.note_taken(make_session(), [7], 5)  # it ended while a disk was full
    later = make_session()
    journal.note_taken(later, [9], 6)
    journal.note_released(later, [9])
    again = ExactJournal(memory)
    again.load(lambda position: 1)
    asked = []
    assert again.choose(lambda name, sent: asked.append(name) or sent) == set()
    assert asked == [later.client_id]  # what the one before was sent is nobody's, of shared subscriptions too
    again.finish_load()
    assert list(memory.replay()) == []


def test_session_that_is_no_more_is_forgotten():
    memory = MemoryJournal()
    journal = ExactJournal(memory)
    journal.note_taken(make_session(), [1], 5)
    again = ExactJournal(memory)
    again.load(lambda position: 1)
    assert again.choose(lambda name, sent: None) == set()
    again.finish_load()
    assert list(memory.replay()) == []


def test_nothing_is_taken_on_a_full_disk():
    memory = FullJournal()
    journal = ExactJournal(memory)
    session = make_session()
    journal.note_taken(session, [1], 5)
    memory.is_full = True
    with pytest.raises(DiskFullError):
        journal.note_taken(session, [2], 6)
    assert session.taken == {1}


def test_another_journal_is_refused():
    memory = MemoryJournal()
    memory.append_many(b"x" * 16, 16)
    with pytest.raises(DataFolderUnusableError):
        ExactJournal(memory).load(lambda position: 0)

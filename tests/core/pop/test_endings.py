from __future__ import annotations

from core.pop import endings as module
from core.pop.endings import Ending, Endings


def test_messages_that_end_alike_one_after_the_other_are_one_entry():
    endings = Endings()
    endings.note((b"q", b"g"), [3, 4, 5, 9], 4, "expired", 10)
    endings.note((b"q", b"g"), [10, 11], 2, "expired", 20)
    endings.note_run((b"q", b"g"), 12, 12, "maxlen", 30)
    assert endings.find(b"q", b"g", 4) == Ending("expired", 10, 10)
    assert endings.find(b"q", b"g", 11) == Ending("expired", 10, 20)
    assert [endings.find(b"q", b"g", offset) for offset in (2, 6, 12)] == [None] * 3
    assert endings.find(b"q", b"other", 4) is None


def test_a_message_that_ended_twice_is_told_with_the_last_time():
    endings = Endings()
    endings.note_run((b"q", b""), 0, 9, "purged", 1)
    endings.note_run((b"q", b""), 4, 5, "rejected", 2)
    assert endings.find(b"q", b"", 4) == Ending("rejected", 2, 2)
    assert endings.find(b"q", b"", 5) == Ending("purged", 1, 1)


def test_what_is_forgotten_is_said_to_be_not_kept(monkeypatch):
    monkeypatch.setattr(module, "RUNS_MAX", 2)
    monkeypatch.setattr(module, "READERS_MAX", 2)
    endings = Endings()
    for first in (0, 10, 20):
        endings.note_run((b"q", b""), first, first + 1, "rejected", first)
    assert (endings.find(b"q", b"", 0), endings.is_kept(b"q", b"", 0)) == (None, False)
    assert endings.is_kept(b"q", b"", 5)
    assert endings.is_kept(b"never", b"", 5)
    for name in (b"r", b"s"):
        endings.note_run((name, b""), 0, 1, "rejected", 30)
    assert not endings.is_kept(b"q", b"", 20)
    endings.note_run((b"q", b""), 30, 31, "rejected", 40)
    assert not endings.is_kept(b"q", b"", 20)

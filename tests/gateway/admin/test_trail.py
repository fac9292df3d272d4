from __future__ import annotations

from gateway.admin import trail as module
from gateway.admin.trail import Look, Passed, Trail

Q = (b"q", b"")


def test_a_message_was_done_between_the_look_that_saw_it_wait_and_the_one_that_saw_it_done():
    trail = Trail()
    trail.note(Q, 100, 5, 5, "a")
    trail.note(Q, 200, 7, 5, "a")
    trail.note(Q, 300, 7, 7, "b")
    trail.note(Q, 400, 9, 9, "b")
    assert trail.find(Q, 5) == Passed(200, 300, "a; b")
    assert trail.find(Q, 8) == Passed(300, 400, "b")
    assert trail.find(Q, 3) == Passed(0, 100, "a")
    assert trail.find(Q, 9) == Passed(400, 0, "b")
    assert trail.find((b"never", b""), 1) == Passed(0, 0, "")


def test_a_reader_that_stands_still_keeps_its_first_look_there_and_the_last():
    trail = Trail()
    for at_ms in range(100, 1_000, 100):
        trail.note(Q, at_ms, 5, 5)
    trail.note(Q, 1_000, 6, 6)
    assert trail.find(Q, 5) == Passed(900, 1_000, "")
    assert trail.find(Q, 4) == Passed(0, 100, "")


def test_of_old_looks_fewer_are_kept_and_of_many_readers_the_latest(monkeypatch):
    monkeypatch.setattr(module, "READERS_MAX", 2)
    trail = Trail()
    for at in range(1_000):
        trail.note(Q, at, at, at)
    assert trail.find(Q, 998) == Passed(998, 999, "")
    found = trail.find(Q, 500)
    assert found.from_ms <= 500 < found.until_ms
    for name in (b"r", b"s"):
        trail.note((name, b""), 1, 1, 1)
    assert trail.find(Q, 998) == Passed(0, 0, "")


def test_a_look_before_a_message_was_stored_that_is_past_it_is_not_at_this_message():
    trail = Trail()
    trail.note(Q, 100, 9, 9, "of another, which a power cut took")
    trail.note(Q, 300, 5, 5, "a")
    trail.note(Q, 400, 6, 6, "b")
    assert trail.find(Q, 5, 200) == Passed(300, 400, "a; b")


def test_the_latest_looks_are_told():
    trail = Trail()
    for at in range(3):
        trail.note(Q, at, at + 1, at, "c")
    assert trail.readers() == [Q]
    assert trail.latest(Q, 2) == [Look(1, 2, 1, "c"), Look(2, 3, 2, "c")]

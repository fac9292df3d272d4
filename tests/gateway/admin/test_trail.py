from __future__ import annotations

from gateway.admin import trail as module
from gateway.admin.trail import Passed, Trail


def test_a_message_was_done_between_the_look_that_saw_it_wait_and_the_one_that_saw_it_done():
    trail = Trail()
    trail.note("q", 100, 5, 5, "a")
    trail.note("q", 200, 7, 5, "a")
    trail.note("q", 300, 7, 7, "b")
    trail.note("q", 400, 9, 9, "b")
    assert trail.find("q", 5) == Passed(200, 300, "a; b")
    assert trail.find("q", 8) == Passed(300, 400, "b")
    assert trail.find("q", 3) == Passed(0, 100, "a")
    assert trail.find("q", 9) == Passed(400, 0, "b")
    assert trail.find("never", 1) == Passed(0, 0, "")


def test_a_reader_that_stands_still_keeps_its_first_look_there_and_the_last():
    trail = Trail()
    for at_ms in range(100, 1_000, 100):
        trail.note("q", at_ms, 5, 5)
    trail.note("q", 1_000, 6, 6)
    assert trail.find("q", 5) == Passed(900, 1_000, "")
    assert trail.find("q", 4) == Passed(0, 100, "")


def test_of_old_looks_fewer_are_kept_and_of_many_readers_the_latest(monkeypatch):
    monkeypatch.setattr(module, "READERS_MAX", 2)
    trail = Trail()
    for at in range(1_000):
        trail.note("q", at, at, at)
    assert trail.find("q", 998) == Passed(998, 999, "")
    found = trail.find("q", 500)
    assert found.from_ms <= 500 < found.until_ms
    for name in ("r", "s"):
        trail.note(name, 1, 1, 1)
    assert trail.find("q", 998) == Passed(0, 0, "")

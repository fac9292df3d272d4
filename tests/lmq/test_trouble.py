from __future__ import annotations

import pytest

from lmq import trouble
from lmq.trouble import Trouble


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(trouble.time, "monotonic", lambda: now[0])
    return now


def test_a_failure_that_lasts_is_told_at_once_and_then_more_and_more_seldom(clock, caplog):
    one, told = Trouble("pulling"), []
    for second in range(200):
        clock[0] = 1000.0 + second
        one.note_failure(OSError("refused"), "T")
        if caplog.records:
            told.append(second)
            caplog.clear()
    assert told == [0, 5, 15, 35, 75, 135, 195]
    assert one.failures == 200


def test_the_lines_tell_the_cause_and_when_it_works_again(clock, caplog):
    one = Trouble("pulling")
    one.note_success()
    one.note_failure(OSError("refused"), "T")
    clock[0] += 9
    one.note_success()
    one.note_success()
    one.note_failure(TimeoutError(), "T")
    assert caplog.messages == [
        "pulling fails at=T for_s=0 cause=refused; it is tried again",
        "pulling works again after_s=9",
        "pulling fails at=T for_s=0 cause=TimeoutError; it is tried again",
    ]

"""Shared consumption is at least once: against a model, with a kill between any two records of the journal.

`make torture` runs many more of these histories, from a number of its own each time.
"""

from __future__ import annotations

import os

import pytest

from tests.support.pop_model import History

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
HISTORIES = int(os.environ.get("TORTURE_POP_HISTORIES", "2000"))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("core.pop.snapshot.PART_MESSAGES", 2)
    monkeypatch.setattr("core.pop.journal.WORK_PER_RECORD", 1)
    monkeypatch.setattr("core.pop.pop_service.SHOW_COUNT_MAX", 8)
    monkeypatch.setattr("core.pop.pop_service._QUEUE_LOOKS", 2)
    monkeypatch.setattr("core.pop.pop_queue.SHOW_COUNT_MAX", 3)


@pytest.mark.slow
def test_every_message_is_done_once_or_available_whatever_happens():
    for seed in range(FIRST, FIRST + HISTORIES):
        try:
            History(seed).run()
        except BaseException as error:
            error.add_note(f"in the history of seed {seed}")
            raise

from __future__ import annotations

import os

import pytest

from core.errors import FlushFailedError
from core.store import sync_plan
from core.store.sync_plan import FDS_BESIDE_MAX, SyncPlan, sync_now


@pytest.fixture
def synced(monkeypatch):
    """What is synced, in order, in place of doing it."""
    calls = []
    monkeypatch.setattr(sync_plan, "sync_file", calls.append)
    return calls


def test_files_come_before_steps_and_what_follows_a_step_keeps_its_place(synced):
    plan = SyncPlan()
    plan.add_file(1)
    plan.add_file(2)
    assert not plan.has_steps
    plan.add_step(lambda: synced.append("named"))
    plan.add_file(3)
    assert (plan.fds, plan.has_steps) == ([1, 2], True)
    plan.run()
    assert synced == [1, 2, "named", 3]


def test_a_long_step_pauses_between_its_slices(synced):
    plan = SyncPlan()
    plan.add_step(lambda: (synced.append(i) for i in range(3)))
    plan.add_step(lambda: synced.append("short"))
    plan.run_steps(lambda: synced.append("pause"))
    assert synced == [0, "pause", 1, "pause", 2, "pause", "short"]
    plan.run()
    assert synced[7:] == [0, 1, 2, "short"]


def test_a_step_that_failed_is_the_one_that_a_later_call_goes_on_with(synced):
    plan = SyncPlan()
    errors = [FlushFailedError("no room")]

    def fail_once():
        synced.append("tried")
        if errors:
            raise errors.pop()

    for step in (lambda: synced.append("before"), fail_once, lambda: synced.append("after")):
        plan.add_step(step)
    with pytest.raises(FlushFailedError):
        plan.run_steps()
    assert synced == ["before", "tried"]
    plan.run_steps()
    assert synced == ["before", "tried", "tried", "after"]


def test_more_files_than_a_round_takes_are_steps(synced):
    plan = SyncPlan(4)
    for fd in range(7):
        plan.add_file(fd)
    assert (plan.fds, plan.has_steps) == ([0, 1, 2, 3], True)
    plan.run()
    assert synced == list(range(7))


class Owner:
    def __init__(self):
        self.failures = 0

    def begin_sync(self, plan):
        reader, writer = os.pipe()
        os.close(writer)
        plan.add_file(reader, self)

    def sync_failed(self):
        self.failures += 1


def test_an_owner_is_told_when_the_disk_refuses():
    owner = Owner()
    with pytest.raises(FlushFailedError):
        sync_now(owner)  # a pipe cannot be synced
    assert owner.failures == 1


def test_files_beside_are_synced_with_the_plan_and_told_once_at_its_end(synced):
    plan = SyncPlan()
    told = []
    plan.add_files_beside([7, 8], lambda: told.append("names"))
    plan.add_file(1)
    plan.add_step(lambda: synced.append("tables"))
    assert (plan.fds, plan.fds_beside) == ([1], [7, 8])
    plan.run()
    assert sorted(map(str, synced)) == ["1", "7", "8", "tables"]
    assert told == []
    plan.end()
    plan.end()
    assert told == ["names"]


def test_more_files_beside_than_there_is_room_for_are_steps(synced):
    plan = SyncPlan()
    told = []
    for fd in range(FDS_BESIDE_MAX + 1):
        plan.add_files_beside([fd], lambda: told.append("kept"))
    assert (len(plan.fds_beside), plan.has_steps) == (FDS_BESIDE_MAX, True)
    plan.run()
    plan.end()
    assert sorted(synced) == list(range(FDS_BESIDE_MAX + 1))
    assert len(told) == FDS_BESIDE_MAX + 1

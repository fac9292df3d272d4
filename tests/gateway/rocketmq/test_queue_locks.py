"""Locks of queues: one client of a group has each, and what nobody holds leaves nothing behind."""

from __future__ import annotations

from gateway.rocketmq.queue_locks import LOCK_MS, LOOK_MS, NAME_CHARS_MAX, QueueLocks


def test_a_queue_is_one_clients_of_each_group_until_it_gives_it_back_or_does_not_renew_it():
    locks = QueueLocks()
    assert locks.take("g", "a", ("T", 0), 0)
    assert not locks.take("g", "b", ("T", 0), LOCK_MS - 1)
    assert locks.take("other", "b", ("T", 0), 0)
    locks.give_back("g", "b", ("T", 0))
    assert locks.is_held("g", 1)
    assert locks.take("g", "b", ("T", 0), LOCK_MS)
    locks.give_back("g", "b", ("T", 0))
    assert not locks.is_held("g", LOCK_MS)


def test_locks_that_ran_out_and_groups_without_any_are_forgotten():
    locks = QueueLocks()
    for number in range(1_000):
        locks.take(f"g{number}", "c", ("T", 0), 0)
        locks.give_back(f"g{number}", "c", ("T", 0))
        locks.give_back(f"g{number}", "", ("T", 1))
    assert len(locks) == 0
    for number in range(1_000):
        locks.take(f"g{number}", "c", ("T", 0), LOOK_MS)
    assert locks.take("late", "c", ("T", 0), LOOK_MS + LOCK_MS)
    assert len(locks) == 1


def test_there_is_an_end_of_locks_and_of_their_names_and_those_that_are_held_are_renewed():
    locks = QueueLocks(count_max=3)
    assert all(locks.take("g", "c", ("T", number), 0) for number in range(3))
    assert not locks.take("g", "c", ("T", 3), 1)
    assert locks.take("g", "c", ("T", 0), 1)
    locks.give_back("g", "c", ("T", 1))
    assert not locks.take("g", "c", ("T" * (NAME_CHARS_MAX + 1), 0), 1)
    assert locks.take("g", "c", ("T", 3), 1)

"""Parked readers are woken once, by the queues that they are parked on."""

from __future__ import annotations

import pytest

from core.lmq.waiters import Reader, Waiters


class Equal(Reader):
    """A reader that is equal to every other one: only identity counts."""

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.fixture
def waiters():
    return Waiters()


def same(woken, right):
    left = list(woken.values())
    return len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True))


def test_reader_parked_on_several_queues_runs_once(waiters):
    one, two = Equal(), Equal()
    waiters.park(1, one)
    waiters.park(2, one)
    waiters.park(2, two)
    assert same(waiters.wake([1, 2, 3]), [one, two])
    assert same(waiters.wake([2]), [one, two])
    assert waiters.wake([3]) == {}


def test_reader_stays_parked_until_it_is_unparked(waiters):
    one, two, three = Equal(), Equal(), Equal()
    for reader in (one, two, three, two):
        waiters.park(7, reader)
    assert len(waiters.parked(7)) == 3
    waiters.unpark(7, two)
    waiters.unpark(7, two)
    assert same(waiters.wake([7]), [one, three])
    waiters.unpark(7, one)
    assert same(waiters.wake([7]), [three])
    waiters.unpark(7, one)
    waiters.unpark(7, three)
    assert len(waiters.parked(7)) == 0
    assert waiters.wake([7]) == {}


def test_unparking_a_reader_that_is_not_parked_is_harmless(waiters):
    one = Equal()
    waiters.unpark(1, one)
    waiters.park(1, one)
    waiters.unpark(1, Equal())
    assert len(waiters.parked(1)) == 1


def test_parking_the_same_reader_twice_counts_once(waiters):
    one = Equal()
    waiters.park(1, one)
    waiters.park(1, one)
    assert len(waiters.parked(1)) == 1
    waiters.unpark(1, one)
    assert len(waiters.parked(1)) == 0


class Serving(Reader):
    def __init__(self, count):
        self.count = count

    def reader_count(self):
        return self.count


def test_clients_of_many_queues_are_counted_at_once(waiters):
    for queue_ref, reader in ((1, Serving(3)), (3, Serving(1)), (3, Serving(0)), (3, Serving(4)), (4, Serving(0))):
        waiters.park(queue_ref, reader)
    assert waiters.reader_counts(0, 6) == [0, 3, 0, 5, 0, 0]
    assert waiters.reader_counts(3, 4) == [5]
    assert waiters.reader_counts(2, 2) == []

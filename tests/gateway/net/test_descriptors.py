from __future__ import annotations

import logging
import os
import resource

import pytest

from gateway.net.descriptors import (
    CONNECTIONS_MIN,
    OVERSHOOT,
    TELL_INTERVAL_MS,
    Capacity,
    DescriptorsError,
    descriptor_limit,
    find_connections_max,
    has_descriptor,
    open_descriptors,
    raise_limit,
)


class Gate:
    """Notes whether it is open."""

    def __init__(self):
        self.is_open = True
        self.changes = 0

    def pause(self):
        self.is_open = False
        self.changes += 1

    def resume(self):
        self.is_open = True
        self.changes += 1

    def waiting_count(self):
        return 0 if self.is_open else 7


class Later:
    """Calls back when it is told to."""

    def __init__(self):
        self.callbacks = []

    def __call__(self, delay_s, callback):
        self.callbacks.append(callback)

    def run(self):
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()


@pytest.fixture
def later():
    return Later()


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def capacity(later, gate):
    capacity = Capacity(3, later, is_left=lambda: capacity.has_files)
    capacity.has_files = True
    capacity.add(gate)
    return capacity


def test_newcomers_wait_from_the_last_place_on_until_somebody_leaves(capacity, gate, later):
    assert [capacity.enter() for _ in range(2)] == [True, True]
    assert gate.is_open
    assert capacity.enter()
    assert not gate.is_open
    capacity.leave()
    assert not gate.is_open  # in a moment, with others that leave
    capacity.leave()
    later.run()
    assert gate.is_open
    assert (gate.changes, capacity.pauses, capacity.count) == (2, 1, 1)
    assert later.callbacks == []


def test_those_who_were_accepted_in_the_same_turn_are_let_in_too_but_not_any_number(capacity):
    assert [capacity.enter() for _ in range(3 + OVERSHOOT + 1)] == [True] * (3 + OVERSHOOT) + [False]
    assert capacity.count == 3 + OVERSHOOT


def test_gate_stays_closed_while_there_are_more_than_places(capacity, gate, later):
    for _ in range(5):
        capacity.enter()
    capacity.leave()
    later.run()
    assert not gate.is_open
    for _ in range(2):
        capacity.leave()
    later.run()
    assert gate.is_open


def test_gate_that_comes_while_newcomers_wait_is_closed(capacity):
    for _ in range(3):
        capacity.enter()
    another = Gate()
    capacity.add(another)
    assert not another.is_open


def test_newcomers_wait_while_no_file_can_be_opened_whoever_has_them(capacity, gate, later):
    capacity.enter()
    capacity.has_files = False
    capacity.look(0)
    assert not gate.is_open
    capacity.leave()
    later.run()
    assert not gate.is_open
    capacity.has_files = True
    capacity.look(1_000)
    assert gate.is_open


def test_it_is_said_once_a_while_that_newcomers_wait_and_once_that_they_come_in(capacity, caplog, later):
    caplog.set_level(logging.INFO)
    for _ in range(3):
        capacity.enter()
    for now_ms in range(0, 3 * TELL_INTERVAL_MS, 1_000):
        capacity.look(now_ms)
    capacity.leave()
    later.run()
    for now_ms in range(3 * TELL_INTERVAL_MS, 5 * TELL_INTERVAL_MS, 1_000):
        capacity.look(now_ms)
    waits = "newcomers wait: file descriptors allow no more open=3 connections_max=3 waiting=7"
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(", ")[2] or line for line in lines] == [
        *[waits] * 3,
        "connections are let in again open=2 connections_max=3",
    ]


def test_connections_get_what_the_store_and_the_process_leave():
    assert find_connections_max(20_000, 1_000) == find_connections_max(21_000, 2_000)
    least = next(limit for limit in range(1, 10_000) if _is_enough(limit))
    assert find_connections_max(least, 300) == CONNECTIONS_MIN
    with pytest.raises(
        DescriptorsError, match=f"limit of {least - 1} open files is too low: .* up to {least}; raise it"
    ):
        find_connections_max(least - 1, 300)


def _is_enough(limit):
    try:
        return find_connections_max(limit, 300) > 0
    except DescriptorsError:
        return False


@pytest.fixture
def soft_limit():
    """Set the soft limit of this process to what a test says, until it ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda limit: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_limit_is_raised_as_far_as_the_system_lets(soft_limit):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft_limit(hard // 2)
    assert descriptor_limit() == hard // 2
    raise_limit()
    assert descriptor_limit() == hard


def test_want_of_a_descriptor_is_seen(soft_limit):
    assert has_descriptor()
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    soft_limit(free)
    assert not has_descriptor()


def test_open_files_are_counted():
    before = open_descriptors()
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(5)]
    assert open_descriptors() == before + 5
    for fd in files:
        os.close(fd)

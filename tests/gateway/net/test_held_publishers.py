from __future__ import annotations

import socket

import pytest

from core.metrics import DoorMetrics
from core.room import Room
from gateway.net.held_publishers import HeldPublishers


class Connection:
    """A connection and its transport in one, which notes its calls."""

    def __init__(self, held, *, can_be_held=True):
        self.held = held
        self.can_be_held = can_be_held
        self.calls = []
        self.transport = self
        self.number = -1

    def hold_if_low(self):
        if self.can_be_held:
            self.held.hold(self)

    def on_held(self):
        self.hold_reading()
        self.calls.append("held")

    def on_released(self, now_ms):
        self.calls.append(now_ms)

    def hold_reading(self):
        self.calls.append("stop")

    def release_reading(self):
        self.calls.append("go on")

    def fileno(self):
        return self.number

    def deadline_changed(self):
        self.calls.append("deadline")


@pytest.fixture
def room():
    return Room(100)


@pytest.fixture
def metrics():
    return DoorMetrics("mqtt")


@pytest.fixture
def held(room, metrics):
    return HeldPublishers(room, metrics)


def test_held_connection_is_not_read_until_the_room_is_enough(room, metrics, held):
    connection = Connection(held)
    room.note(50, is_full=False, now_ms=0)
    held.hold(connection)
    held.hold(connection)
    assert connection.calls == ["stop", "held", "deadline"]
    assert held.is_held_at(connection.transport)
    assert (metrics.publishers_held, metrics.holds) == (1, 1)
    room.note(200, is_full=False, now_ms=7)
    assert connection.calls[3:] == [7, "go on", "deadline"]
    assert not held.is_held_at(connection.transport)
    assert (metrics.publishers_held, metrics.holds) == (0, 1)


def test_known_publishers_are_held_at_once_if_they_can_be_and_then_known_no_more(room, metrics, held):
    busy, closing, silent = Connection(held), Connection(held, can_be_held=False), Connection(held)
    held.note_publisher(busy)
    held.note_publisher(closing)
    room.note(50, is_full=False, now_ms=0)
    assert (busy.calls[0], closing.calls, silent.calls) == ("stop", [], [])
    assert metrics.publishers_held == 1
    room.note(200, is_full=False, now_ms=1)
    busy.calls.clear()
    room.note(50, is_full=False, now_ms=2)
    assert busy.calls == []


def test_connection_that_is_gone_is_told_nothing(room, metrics, held):
    first, second = Connection(held), Connection(held)
    room.note(50, is_full=False, now_ms=0)
    held.hold(first)
    held.hold(second)
    held.forget(first)
    held.forget(first)
    assert (held.is_held_at(first.transport), held.is_held_at(second.transport)) == (False, True)
    assert metrics.publishers_held == 1
    room.note(200, is_full=False, now_ms=1)
    assert first.calls == ["stop", "held", "deadline"]
    assert second.calls[3:] == [1, "go on", "deadline"]
    assert metrics.publishers_held == 0


def test_of_those_who_have_gone_the_rest_is_read(room, held):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        pairs = []
        for _ in range(3):
            theirs = socket.create_connection(listener.getsockname())
            pairs.append((theirs, listener.accept()[0], Connection(held)))
    room.note(50, is_full=False, now_ms=0)
    for theirs, ours, connection in pairs:
        theirs.sendall(b"more")
        connection.number = ours.fileno()
        held.hold(connection)
    held.hold(Connection(held))
    _, gone, lost = pairs
    gone[0].close()
    lost[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    lost[0].close()
    held.read_departed()
    assert [pair[2].calls[3:] for pair in pairs] == [[], ["go on"], ["go on"]]
    held.hold(gone[2])
    assert gone[2].calls[3:] == ["go on"]
    for theirs, ours, _ in pairs:
        theirs.close()
        ours.close()

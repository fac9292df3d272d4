"""What light queues are called: a name in the log says that by itself, but for long ones, which are told here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from core.lmq.queue_name import AMQP, LIGHT_PREFIX, MQTT, parse_queue_name

ROWS_BYTES_MAX = 4 << 20  # of all long filters that are written down; chosen: all of them are read at a start
KNOWN_BYTES = 32 << 20  # of all long names that are known: of more, those noted last
NAME_BYTES = 250  # of a long name besides its letters: the digest, two objects, its place
DIGITS = 8  # of a long name that is not known
_KIND_BYTES = len(LIGHT_PREFIX) + 5  # of the kind, too, and what ends it
_HASHED = b"|z"
_BESIDE = re.compile(rb"\|r|\|x|\|y[0-9]+%")  # before the rest of the name of an AMQP queue, or of an exchange
_PASSING = re.compile(rb"([^%]*)%\|t[0-9]+")


class Called(NamedTuple):
    """What people call a light queue."""

    kind: bytes  # MQTT or AMQP
    vhost: bytes  # empty for MQTT
    name: bytes  # the filter, or the queue's name


class NameRows(Protocol):
    """A durable map, as the store's tables are."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def delete(self, key: bytes) -> None:
        """Remove `key`."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys and values."""


class LongNames:
    """Finds the name that people use for a light queue, also where its own name has a digest for a long part.

    It knows the long ones that were noted since the start: filters as they are subscribed to, and queues as they are
    declared or loaded. Filters are written down besides, as messages outlive their subscriptions.

    Args:
        rows: Where filters are written down, by light name; None for nowhere.
        has_room: Whether there is room for one more.
    """

    def __init__(self, rows: NameRows | None = None, has_room: Callable[[], bool] = lambda: True) -> None:
        self._rows = rows
        self._has_room = has_room
        self._rows_bytes = sum(NAME_BYTES + len(row[1]) for row in (() if rows is None else rows.items()))
        self._known: dict[bytes, Called] = {}
        self._bytes = 0  # about what they take

    def note(self, light_name: bytes, kind: bytes, vhost: bytes, name: bytes) -> None:
        """Note what a light queue is called, where its name does not say it."""
        if light_name[_KIND_BYTES:].startswith(_HASHED):
            if kind == MQTT:
                self._write_down(light_name, name)
            self._forget(light_name)
            self._known[light_name] = Called(kind, vhost, name)
            self._bytes += NAME_BYTES + len(name) + len(vhost)
            while self._bytes > KNOWN_BYTES:
                self._forget(next(iter(self._known)))

    def _write_down(self, light_name: bytes, name: bytes) -> None:
        rows, size = self._rows, NAME_BYTES + len(name)
        if rows is None or rows.get(light_name) is not None:
            return
        if self._rows_bytes + size <= ROWS_BYTES_MAX and self._has_room():
            rows.put(light_name, name)
            self._rows_bytes += size

    def unused(self) -> list[bytes]:
        """Return the light names of filters that are written down, and that nobody subscribed to since the start."""
        rows = () if self._rows is None else self._rows.items()
        return [light_name for light_name, _ in rows if light_name not in self._known]

    def forget(self, light_name: bytes) -> None:
        """Forget a filter that was not used and has no messages, unless it was subscribed to meanwhile."""
        name = None if self._rows is None or light_name in self._known else self._rows.get(light_name)
        if self._rows is not None and name is not None:
            self._rows.delete(light_name)
            self._rows_bytes -= NAME_BYTES + len(name)

    def _find_written(self, light_name: bytes) -> Called | None:
        name = None if self._rows is None else self._rows.get(light_name)
        return None if name is None else Called(MQTT, b"", name)

    def _forget(self, light_name: bytes) -> None:
        called = self._known.pop(light_name, None)
        if called is not None:
            self._bytes -= NAME_BYTES + len(called.name) + len(called.vhost)

    def find(self, light_name: bytes) -> Called | None:
        """Return what a light queue is called; None for one of RocketMQ.

        What an AMQP queue refused, and its messages of a priority, are called as the queue. Where it is not known what
        a queue is called, that is said with some digits of its name.
        """
        parsed = parse_queue_name(light_name)
        if parsed is not None:
            kind, parts = parsed
            return Called(kind, parts[0] if kind == AMQP else b"", parts[-1])
        kind, rest = light_name[len(LIGHT_PREFIX) : _KIND_BYTES - 1], light_name[_KIND_BYTES:]
        if not light_name.startswith(LIGHT_PREFIX) or kind not in {MQTT, AMQP}:
            return None
        if beside := _BESIDE.match(rest):
            return self.find(light_name[:_KIND_BYTES] + rest[beside.end() :])
        if passing := _PASSING.fullmatch(rest):
            place = parse_queue_name(light_name[:_KIND_BYTES] + passing[1] + b"%")
            return Called(kind, place[1][0] if place else b"", b"(ends with its users)")
        what = b"filter" if kind == MQTT else b"queue"
        unknown = b"(a %b with a long name, %b)" % (what, rest.removeprefix(_HASHED)[:DIGITS])
        return self._known.get(light_name) or self._find_written(light_name) or Called(kind, b"", unknown)

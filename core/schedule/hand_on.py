"""Publishes messages that are due again, from the records in which they wait; or into minutes, when their day comes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from core import octets
from core.errors import LmqError, MessageTooLargeError
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_RETAIN, PublishBatch, Route, StoredBatch

LOGGER = logging.getLogger(__name__)

COUNT_MAX = 256  # messages handed on in one go: 0.1 ms at 0.41 us each
_COUNT_MAX = COUNT_MAX
_FLAG_MARK = FLAG_MARK
_FLAG_MARK_MASK = FLAG_MARK_MASK
_FLAG_RETAIN = FLAG_RETAIN
_BORN_HOST_AT = 48  # in a record
_BORN_IPV6 = 0x10
_KEPT_BITS = 0x703  # sysFlag: whether and how the body is compressed


class Destination(NamedTuple):
    """Where a message goes: its route, its topic, what its properties are then, besides the route's, and its flag."""

    route: Route
    topic: bytes
    properties: bytes
    flag: int


class Publisher(Protocol):
    """What appends and wakes: the broker."""

    def publish_batch(self, batch: PublishBatch, now_ms: int) -> None:
        """Append the messages of `batch`."""


class HandOn:
    """Publishes rows of what was read, with where each goes."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._batch = PublishBatch(COUNT_MAX)
        self.dropped = 0  # messages that could not be stored on their topic

    def publish(
        self,
        found: StoredBatch,
        rows: Sequence[int],
        place: Callable[[StoredBatch, int], Destination | None],
        now_ms: int,
    ) -> tuple[int, list[int]]:
        """Publish `rows` of `found`, in their order; those that `place` gives no destination are left out.

        Returns:
            How many rows are done with, all unless the store refused, and the tickets of what was published.
        """
        tickets: list[int] = []
        done = 0
        while done < len(rows):
            end = self._fill(found, rows, done, place)
            batch = self._batch
            try:
                self._publisher.publish_batch(batch, now_ms)
            except MessageTooLargeError as error:
                done += batch.appended + 1
                tickets.append(batch.ticket)
                self.dropped += 1
                LOGGER.warning("a message that waited cannot be stored, dropping it reason=%s", error)
            except LmqError as error:
                LOGGER.warning("messages wait on: they cannot be stored reason=%s", error)
                done += batch.appended
                if batch.appended:
                    tickets.append(batch.ticket)
                break
            else:
                done = end
                tickets.append(batch.ticket)
        self._batch.clear()
        return done, tickets

    def _fill(
        self,
        found: StoredBatch,
        rows: Sequence[int],
        first: int,
        place: Callable[[StoredBatch, int], Destination | None],
    ) -> int:
        """Fill the batch with rows from number `first` on, all of one born host; return the number after the last."""
        batch = self._batch
        batch.clear()
        batch.buf = found.buf
        batch.born_host = _born_host(found, rows[first])
        extra = bytearray()
        routes: dict[int, int] = {}
        at = 0
        is_ours = False
        for i in rows[first : first + _COUNT_MAX]:
            if _born_host(found, i) != batch.born_host:
                break
            to = place(found, i)
            if to is not None:
                if at > 0 and is_ours != _is_ours(to.flag):
                    break  # what a producer's own flag says is nothing to us
                is_ours = _is_ours(to.flag)
            route = None if to is None else to.route
            index = routes.get(id(route))
            if index is None:
                index = routes[id(route)] = len(batch.routes)
                batch.routes.append(route)
                batch.topics.append(b"" if to is None else to.topic)
            batch.route_index[at] = index
            batch.extra_start[at] = len(extra)
            if to is not None:
                extra += to.properties
                flag = to.flag
                batch.flag[at] = flag
                if is_ours and flag & _FLAG_RETAIN:
                    batch.retained_count += 1
            batch.extra_end[at] = len(extra)
            batch.body_start[at], batch.body_end[at] = found.body_start[i], found.body_end[i]
            batch.sys_flag[at] = found.sys_flag[i] & _KEPT_BITS
            batch.reconsume_times[at] = found.attempt[i] - 1
            batch.born_ms[at] = found.born_ms[i]
            at += 1
        batch.extra = bytes(extra)
        batch.count = at
        return first + at


def _is_ours(flag: int) -> bool:
    return flag & _FLAG_MARK_MASK == _FLAG_MARK


def _born_host(found: StoredBatch, i: int) -> bytes:
    start = found.record_start[i] + _BORN_HOST_AT
    return octets.read_bytes(found.buf, start, start + (20 if found.sys_flag[i] & _BORN_IPV6 else 8))

"""Stores how transactions ended: committed messages on their topics, and behind them which half ones are done with.

Both are one batch: they are stored together or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from core.broker import Broker
from core.errors import LmqError, MessageTooLargeError
from core.lmq.queue_name import is_light
from core.message import PublishBatch, Route, StoredBatch
from core.schedule.slots import strip_crc
from gateway.rocketmq.consumer_manage import LaterAnswered
from gateway.rocketmq.delay import ROUTES_MAX
from gateway.rocketmq.topic_table import GIVEN_UP_TOPIC, OP_TOPIC
from gateway.rocketmq.transactions.half import (
    DONE_COUNT_MAX,
    Half,
    done_properties,
    encode_done,
)
from lmq.remoting.commands import Command

LOGGER = logging.getLogger(__name__)

COUNT_MAX = 128  # transactions ended in one go; chosen, as dead letters of a turn
BYTES_MAX = 1 << 20  # of their bodies, but for the last one's, which are copied
_COMMITTED = 0x8  # sysFlag
_KEPT_BITS = 0x703  # sysFlag: whether and how the body is compressed
_BORN_HOST_AT = 48  # in a record
_BORN_IPV6 = 0x10


class Action(IntEnum):
    """What becomes of a half message, by the numbers of END_TRANSACTION."""

    NONE = 0  # it waits on
    COMMIT = 8
    ROLLBACK = 12
    GIVE_UP = 13  # ours: nobody ended it


LETTERS = {Action.COMMIT: b"c", Action.ROLLBACK: b"r", Action.GIVE_UP: b"g"}  # on disk


class Ender(LaterAnswered, Protocol):
    """The connection of a producer that ends a transaction."""

    def may_publish_topic(self, topic: bytes) -> bool:
        """Whether this client may send to the topic of the topic space."""

    def may_publish(self, name: bytes) -> bool:
        """Whether this client may send to the topic."""


class Ending(NamedTuple):
    """How a transaction ends; without a request where it is given up."""

    offset: int  # the half message's number in its queue
    place: int  # and where its record is; -1 where nobody said
    group: bytes
    action: Action
    request: Command | None = None
    ender: Ender | None = None


class Row(NamedTuple):
    """A half message that was read, and how it ends."""

    at: int  # among the messages that were read
    half: Half
    ending: Ending


class Published(NamedTuple):
    """Endings that were stored with a ticket, or were not, for a reason."""

    endings: list[Ending]
    ticket: int
    error: LmqError | None
    owes: bool = False  # the log does not say yet that they are done with


class Endings:
    """Publishes how transactions ended."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._batch = PublishBatch(COUNT_MAX + 1)
        self._buf, self._extra = bytearray(), bytearray()  # of the batch that is being filled
        self._routes: dict[int, int] = {}
        self._known: dict[tuple[bytes, int, tuple[bytes, ...]], Route] = {}
        self.owed: list[tuple[int, Action]] = []  # half messages that are done with, which the log does not say yet

    def publish(self, found: StoredBatch, rows: Sequence[Row], now_ms: int) -> list[Published]:
        """Store how the transactions of `rows` ended."""
        outcomes: list[Published] = []
        first = 0
        while first < len(rows):
            end = self._fill(found, rows, first, now_ms)
            endings = [row.ending for row in rows[first:end]]
            batch = self._batch
            try:
                self._broker.publish_batch(batch, now_ms)
            except LmqError as error:
                end = first + self._note_failure(outcomes, endings, error)
            else:
                outcomes.append(Published(endings, batch.ticket, None))
            first = end
        self._batch.clear()
        return outcomes

    def _note_failure(self, outcomes: list[Published], endings: list[Ending], error: LmqError) -> int:
        """Note what became of a batch that was not stored whole; return how many endings are dealt with."""
        batch = self._batch
        messages = [i for i, ending in enumerate(endings) if ending.action != Action.ROLLBACK]
        if isinstance(error, MessageTooLargeError) and batch.appended < len(messages):
            at = messages[batch.appended]
            LOGGER.warning("a half message cannot be stored on its topic reason=%s", error)
            outcomes += [Published(endings[:at], batch.ticket, None, owes=True), Published([endings[at]], 0, error)]
            return at + 1
        stored = [endings[i] for i in messages[: batch.appended]]
        if stored:
            outcomes.append(Published(stored, batch.ticket, None, owes=True))
        outcomes.append(Published([ending for ending in endings if ending not in stored], 0, error))
        return len(endings)

    def pay(self, now_ms: int) -> None:
        """Say in the log which half messages are done with, where it does not."""
        batch = self._batch
        self._begin()
        owed = self.owed[:DONE_COUNT_MAX]
        self._add_done(0, owed, now_ms)
        try:
            self._broker.publish_batch(batch, now_ms)
        except LmqError as error:
            LOGGER.warning("cannot say that transactions are done with, trying again reason=%s", error)
        else:
            del self.owed[: len(owed)]
        batch.clear()

    def _fill(self, found: StoredBatch, rows: Sequence[Row], first: int, now_ms: int) -> int:
        """Fill the batch with rows from number `first` on, all of one born host; return the number after the last."""
        batch = self._batch
        self._begin()
        at = 0
        end = first
        for row in rows[first : first + COUNT_MAX]:
            if len(self._buf) > BYTES_MAX:
                break
            if row.ending.action != Action.ROLLBACK:
                born_host = _born_host(found, row.at)
                if at and born_host != batch.born_host:
                    break
                batch.born_host = born_host
                self._add(at, found, row)
                at += 1
            end += 1
        self._add_done(at, [(row.ending.offset, row.ending.action) for row in rows[first:end]], now_ms)
        return end

    def _begin(self) -> None:
        self._batch.clear()
        self._batch.born_host = self._broker.store_host
        self._buf, self._extra = bytearray(), bytearray()
        self._routes = {}

    def _add(self, at: int, found: StoredBatch, row: Row) -> None:
        """Put the message of a row into the batch as its message `at`."""
        batch = self._batch
        i = row.at
        sys_flag = found.sys_flag[i] & _KEPT_BITS
        if row.ending.action == Action.COMMIT:
            route, properties = self._route_of(row.half), row.half.properties
            sys_flag |= _COMMITTED
        else:
            route = self._find_route(GIVEN_UP_TOPIC, 0, ())
            properties = strip_crc(bytes(found.buf[found.properties_start[i] : found.properties_end[i]]))
        self._put(at, route, row.half.space_topic or route.topic)
        self._put_text(at, found.buf[found.body_start[i] : found.body_end[i]], properties)
        batch.flag[at] = found.flag[i]
        batch.sys_flag[at] = sys_flag
        batch.reconsume_times[at] = found.attempt[i] - 1
        batch.born_ms[at] = found.born_ms[i]

    def _add_done(self, at: int, done: Sequence[tuple[int, Action]], now_ms: int) -> None:
        """End the batch with the record that says which half messages are done with."""
        batch = self._batch
        self._put(at, self._find_route(OP_TOPIC, 0, ()), OP_TOPIC)
        letters = b"".join(LETTERS[action] for _, action in done)
        self._put_text(at, encode_done(offset for offset, _ in done), done_properties(letters))
        batch.flag[at] = batch.sys_flag[at] = batch.reconsume_times[at] = 0
        batch.born_ms[at] = now_ms
        batch.buf, batch.extra = bytes(self._buf), bytes(self._extra)
        batch.count = at + 1

    def _route_of(self, half: Half) -> Route:
        """Return where a message goes when it is committed."""
        if half.space_topic:
            return self._broker.route_topic(half.space_topic)
        if is_light(half.topic):
            return self._find_route(self._broker.parent_topic, 0, (half.topic, *half.names))
        return self._find_route(half.topic, half.queue_id, half.names)

    def _find_route(self, topic: bytes, queue_id: int, names: tuple[bytes, ...]) -> Route:
        key = (topic, queue_id, names)
        route = self._known.get(key)
        if route is None:
            if len(self._known) >= ROUTES_MAX:
                self._known.clear()
            route = self._known[key] = self._broker.route_rocketmq(topic, queue_id, names)
        return route

    def _put_text(self, at: int, body: bytes | bytearray | memoryview, properties: bytes) -> None:
        batch = self._batch
        batch.body_start[at] = len(self._buf)
        self._buf += body
        batch.body_end[at] = len(self._buf)
        batch.extra_start[at] = len(self._extra)
        self._extra += properties
        batch.extra_end[at] = len(self._extra)

    def _put(self, at: int, route: Route, topic: bytes) -> None:
        batch = self._batch
        index = self._routes.get(id(route))
        if index is None:
            index = self._routes[id(route)] = len(batch.routes)
            batch.routes.append(route)
            batch.topics.append(topic)
        batch.route_index[at] = index


def _born_host(found: StoredBatch, i: int) -> bytes:
    start = found.record_start[i] + _BORN_HOST_AT
    return bytes(found.buf[start : start + (20 if found.sys_flag[i] & _BORN_IPV6 else 8)])

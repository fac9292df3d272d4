"""Delayed messages: RocketMQ's levels, each a queue of `SCHEDULE_TOPIC_XXXX`, handed on to their topics when due.

All messages of a level wait equally long, so they come due in the order of their queue: a level costs one place,
however many messages wait. The record that waits names the message's topic and queue in REAL_TOPIC and REAL_QID, and
so does the one that is stored when it is due. A place moves when what it passed is as safe as the settings say: a
killed process hands on again what it cannot be sure of, and loses nothing.

Source: docs/protocols/rocketmq.md, "Delayed messages".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from core.broker import Broker
from core.errors import LmqError, MessageTooLargeError
from core.lmq.queue_name import is_light
from core.lmq.waiters import Reader
from core.message import AWAY, PublishBatch, Route, StoredBatch
from core.metrics import DoorMetrics
from core.properties import CRC, decode_properties, encode_properties
from gateway.rocketmq.topic_table import SCHEDULE_TOPIC, queue_key
from gateway.settings.delay_levels import LEVELS_COUNT_MAX

LOGGER = logging.getLogger(__name__)

PLACES_GROUP = b"CID_RMQ_SYS_SCHEDULE"  # its offsets in the levels' queues are the places; no client can commit there
COUNT_MAX = 256  # messages handed on in one go: 0.1 ms at 0.41 us each
BYTES_MAX = 1 << 20  # of one read of a level's queue, so that large bodies do not hold the loop
ROUTES_MAX = 4_096  # remembered, about 0.8 KB each
REAL_TOPIC = b"REAL_TOPIC"
REAL_QUEUE = b"REAL_QID"
LATER_DISPATCH = b"LMQ_LATER"  # light queues that the message goes to when it is due, with commas between
_LATER_NAME = LATER_DISPATCH + b"\x01"
_CRC_NAME = CRC + b"\x01"
_BORN_HOST_AT = 48  # in a record
_BORN_IPV6 = 0x10
_KEPT_BITS = 0x703  # sysFlag: whether and how the body is compressed


def waiting_prefix(topic: bytes, queue_id: int, names: Sequence[bytes]) -> bytes:
    """Return the properties that the record of a message begins with that waits to go to a topic's queue."""
    prefix = [(REAL_TOPIC, topic), (REAL_QUEUE, b"%d" % queue_id)]
    if names:
        prefix.insert(0, (LATER_DISPATCH, b",".join(names)))
    return encode_properties(prefix)


def real_route(broker: Broker, properties: bytes) -> Route | None:
    """Return where a message goes whose waiting record has these properties, None where they do not say it."""
    found = decode_properties(properties)
    topic, queue_id = found.get(REAL_TOPIC, b""), found.get(REAL_QUEUE, b"")
    later = found.get(LATER_DISPATCH, b"")
    if not topic or not queue_id.isdigit():
        LOGGER.warning("a delayed message names no topic, dropping it")
        return None
    names = later.split(b",") if later else []
    if is_light(topic):
        topic, queue_id, names = broker.parent_topic, b"0", [topic, *names]
    return broker.route_rocketmq(topic, int(queue_id), names)


class Level:
    """One level's queue, and how far it was handed on."""

    def __init__(self, number: int, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.key = queue_key(SCHEDULE_TOPIC, number)
        self.queue_ref = -1  # until its ends are known
        self.is_opening = False
        self.offset = 0  # the next to hand on
        self.kept_offset = 0  # the next to hand on after the process is killed
        self.due_ms = 0  # when the next is due; 0: not looked at
        self.losses = 0  # batches that were handed on and lost: what was handed on before is so again
        self.seen_until = 0  # messages before this offset were there at `seen_ms`
        self.seen_ms = 0

    def see(self, max_offset: int, now_ms: int) -> None:
        """Note what waits now, where that was not noted before."""
        if self.offset >= self.seen_until:
            self.seen_until, self.seen_ms = max_offset, now_ms

    def due_at(self, offset: int, store_ms: int) -> int:
        """Return when a message is due: no later than its delay after it was seen, though the clock was set back."""
        return self.delay_ms + (min(store_ms, self.seen_ms) if offset < self.seen_until else store_ms)


class DelayService(Reader):
    """Hands delayed messages on when they are due.

    Args:
        broker: The one door of the core.
        metrics: Where messages are counted that are dropped.
        levels_ms: How long each level waits. Queues beyond them may hold messages of levels that there were once:
            these wait as long as the last level, which is also what a message on such a level is sent to.
    """

    def __init__(self, broker: Broker, metrics: DoorMetrics, levels_ms: Sequence[int]) -> None:
        self._broker = broker
        self._metrics = metrics
        self._levels_ms = tuple(levels_ms)
        self._levels = [Level(number, _wait_of(levels_ms, number)) for number in range(LEVELS_COUNT_MAX)]
        self.on_changed: list[Callable[[], None]] = []  # called when other levels hold
        self._found = StoredBatch(COUNT_MAX)
        self._batch = PublishBatch(COUNT_MAX)
        self._routes: dict[bytes, Route] = {}
        self._open: list[Level] = []  # those whose queues are there, and their ends known
        self._next_level = 0  # which of the open ones is the first to be looked at
        self._queue_count = 0  # how many queues there were at the last look for those of levels; 0: look again
        for level in self._levels:
            level.offset = level.kept_offset = broker.consumer_offsets.get(PLACES_GROUP, level.key) or 0
        broker.hold(self.positions)
        broker.timer.followers.append(self)

    def reload(self, levels_ms: Sequence[int]) -> None:
        """Let levels wait so long from now on, also what waits on them."""
        if tuple(levels_ms) == self._levels_ms:
            return
        self._levels_ms = tuple(levels_ms)
        for number, level in enumerate(self._levels):
            level.delay_ms, level.due_ms = _wait_of(levels_ms, number), 0
        for tell in self.on_changed:
            tell()
        self._broker.request_run(self)

    def route(self, level: int, topic: bytes, queue_id: int, names: Sequence[bytes]) -> Route:
        """Return the route of messages that wait on `level`, from 1, to go to a topic's queue and to light queues."""
        prefix = waiting_prefix(topic, queue_id, names)
        return self._broker.route_rocketmq(SCHEDULE_TOPIC, min(level, len(self._levels_ms)) - 1, (), prefix)

    def positions(self) -> Iterator[tuple[int, int]]:
        """Give the levels' queues, each with the first offset that retention must leave."""
        for level in self._levels:
            if level.queue_ref >= 0:
                yield level.queue_ref, level.kept_offset

    def deliver_due(self, now_ms: int) -> None:
        """Hand on what is due; what is more than a bit of work goes on in the turns that follow."""
        self.on_ready(now_ms)

    def on_ready(self, now_ms: int) -> bool:
        """Hand on one batch, the levels in turn; ask for the next turn where more is due."""
        if self._broker.room.is_low or self._broker.is_failed:
            return False
        self._look_for_queues()
        left = COUNT_MAX
        for _ in range(len(self._open)):
            level = self._open[self._next_level % len(self._open)]
            self._next_level += 1
            if level.due_ms <= now_ms and level.offset < self._broker.max_offset(level.queue_ref):
                left -= self._deliver(level, left, now_ms)
                if left <= 0:
                    self._broker.request_run(self)
                    break
        wake_ms = min((level.due_ms for level in self._open if level.due_ms > now_ms), default=0)
        if wake_ms:
            self._broker.timer.wake_at(wake_ms)
        return False

    def _look_for_queues(self) -> None:
        """Open the queues of levels that were made since the last look; most gateways have none, and look often."""
        queue_count = self._broker.queue_count()
        if queue_count == self._queue_count:
            return
        self._queue_count = queue_count
        for level in self._levels:
            if level.queue_ref < 0 and not level.is_opening:
                queue_ref = self._broker.find_queue(level.key)
                if queue_ref >= 0:
                    level.is_opening = True
                    self._broker.open_queue(queue_ref, partial(self._begin, level, queue_ref))

    def _begin(self, level: Level, queue_ref: int, error: LmqError | None) -> None:
        level.is_opening = False
        if error is not None:
            self._queue_count = 0
        else:  # what is new comes after the end of the log, wherever the place is
            level.queue_ref = queue_ref
            self._open.append(level)
            level.offset = min(level.offset, self._broker.max_offset(queue_ref))
            self._broker.request_run(self)

    def _deliver(self, level: Level, count_max: int, now_ms: int) -> int:
        """Hand on some messages of one level; return how much of `count_max` that is, all where more may be due."""
        found = self._found
        level.see(self._broker.max_offset(level.queue_ref), now_ms)
        count = self._broker.read(level.queue_ref, level.offset, found, count_max, BYTES_MAX)
        if count == AWAY:
            self._broker.request_run(self)
            return 0
        due = 0
        while due < count and level.due_at(found.queue_offset[due], found.store_ms[due]) <= now_ms:
            due += 1
        offset = found.next_offset if due == count else found.queue_offset[due]
        level.due_ms = 0 if due == count else level.due_at(offset, found.store_ms[due])
        done, tickets = self._publish(found, due, now_ms)
        if done < due:
            offset, level.due_ms = found.queue_offset[done], 0
        ends = [(ticket, found.queue_offset[end] if end < due else offset) for ticket, end in tickets]
        found.clear()
        if offset > level.offset:
            level.offset = offset
            for ticket, end in ends or [(0, offset)]:
                self._broker.when_stored(ticket, partial(self._keep, level, end, level.losses))
        return count_max if due == done == count > 0 else done

    def _keep(self, level: Level, offset: int, losses: int, error: LmqError | None) -> None:
        """Move the place to `offset`, or go back to it, where what was handed on is lost."""
        if losses != level.losses:
            return  # it is handed on again, with what was lost before it
        if error is None:
            level.kept_offset = offset
            self._broker.consumer_offsets.commit(PLACES_GROUP, level.key, offset)
            return
        LOGGER.warning("delayed messages were not stored, they are handed on again cause=%s", error)
        level.losses += 1
        level.offset, level.due_ms = level.kept_offset, 0

    # Messages whose time has come

    def _publish(self, found: StoredBatch, count: int, now_ms: int) -> tuple[int, list[tuple[int, int]]]:
        """Publish the first `count` messages of `found`.

        Returns:
            How many are done with, and the tickets of what was published, each with the number of messages until then.
        """
        tickets: list[tuple[int, int]] = []
        done = 0
        while done < count:
            end = self._fill(found, done, count)
            try:
                self._broker.publish_batch(self._batch, now_ms)
            except MessageTooLargeError as error:
                done += self._batch.appended + 1
                tickets.append((self._batch.ticket, done))
                self._metrics.drop("delayed_too_large")
                LOGGER.warning("a delayed message cannot be stored on its topic, dropping it reason=%s", error)
            except LmqError as error:
                LOGGER.warning("delayed messages wait on: they cannot be stored reason=%s", error)
                done += self._batch.appended
                tickets.append((self._batch.ticket, done))
                break
            else:
                done = end
                tickets.append((self._batch.ticket, done))
        return done, tickets

    def _fill(self, found: StoredBatch, first: int, count: int) -> int:
        """Fill the batch with messages from `first` on, all of one born host; return the number after the last."""
        batch = self._batch
        batch.clear()
        batch.buf = batch.extra = found.buf
        batch.born_host = _born_host(found, first)
        routes: dict[int, int] = {}
        i = first
        while i < count and _born_host(found, i) == batch.born_host:
            at = i - first
            route, extra_start, extra_end = self._route_of(found, i)
            index = routes.get(id(route))
            if index is None:
                index = routes[id(route)] = len(batch.routes)
                batch.routes.append(route)
                batch.topics.append(route.topic if route is not None else b"")
            batch.route_index[at] = index
            batch.extra_start[at], batch.extra_end[at] = extra_start, extra_end
            batch.body_start[at], batch.body_end[at] = found.body_start[i], found.body_end[i]
            batch.flag[at] = found.flag[i]
            batch.sys_flag[at] = found.sys_flag[i] & _KEPT_BITS
            batch.reconsume_times[at] = found.attempt[i] - 1
            batch.born_ms[at] = found.born_ms[i]
            i += 1
        batch.count = i - first
        return i

    def _route_of(self, found: StoredBatch, i: int) -> tuple[Route | None, int, int]:
        """Return where message `i` goes, None where it does not say so, and where its properties begin and end."""
        start, end = found.properties_start[i], found.properties_end[i]
        text = bytes(found.buf[start:end])
        crc_at = text.rfind(_CRC_NAME)
        after_later = text.find(b"\x02") + 1 if text.startswith(_LATER_NAME) else 0
        real_end = text.find(b"\x02", text.find(b"\x02", after_later) + 1) + 1
        route = self._find_route(text[:real_end] if text.startswith(REAL_TOPIC, after_later) else text)
        return route, start + after_later, start + crc_at if crc_at >= 0 else end

    def _find_route(self, properties: bytes) -> Route | None:
        route = self._routes.get(properties)
        if route is None:
            route = real_route(self._broker, properties)
            if route is None:
                return None
            if len(self._routes) >= ROUTES_MAX:
                self._routes.clear()
            self._routes[properties] = route
        return route


def _wait_of(levels_ms: Sequence[int], number: int) -> int:
    return levels_ms[min(number, len(levels_ms) - 1)]


def _born_host(found: StoredBatch, i: int) -> bytes:
    start = found.record_start[i] + _BORN_HOST_AT
    return bytes(found.buf[start : start + (20 if found.sys_flag[i] & _BORN_IPV6 else 8)])

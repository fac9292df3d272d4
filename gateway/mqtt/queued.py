"""How much may wait for a client, and where a light queue begins for it then; `giving_way` divides it among its queues.

How many messages wait, two places in a queue tell. How many bytes, only the records themselves do. So where there is a
limit of bytes, the queues in which something waits are read on every few seconds, each message once, and their sizes
are added up in a few sums a queue. What the limit leaves is right to a sixteenth of it, and to what came since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from core.broker import Broker
from core.lmq.waiters import Reader
from core.message import AWAY, StoredBatch
from gateway.mqtt.queued_limits import QueuedLimits, RowTable, WaitingMax
from gateway.mqtt.session import Subscription
from gateway.runtime.chores import Chores

SUMS = 16  # of a queue at the limit
STEP_COUNT = 16  # subscriptions that are looked at in one step, some 50 us
READ_COUNT_MAX = 256  # messages that are looked at in a step, some 100 us
READ_BYTES_MAX = 1 << 30  # of which only heads are looked at


class Behind(NamedTuple):
    """A subscription at QoS 1 or 2 that reads by itself, and may be behind in its queue."""

    client_id: bytes
    queue_ref: int
    position: int
    is_away: bool  # there is nobody to send to


class Newest:
    """The newest messages of one queue, whose bodies together are within a limit: those from `first` on."""

    __slots__ = ("_bytes_max", "_sums", "_total", "first", "is_over")

    def __init__(self, first: int, bytes_max: int) -> None:
        self.first = first
        self.is_over = False  # what was before `first` is over the limit
        self._bytes_max = bytes_max
        self._total = 0
        self._sums: deque[tuple[int, int]] = deque()  # where each begins, and how many bytes

    def add(self, offset: int, size: int) -> None:
        """Count the next message."""
        sums = self._sums
        if sums and sums[-1][1] < self._bytes_max // SUMS:
            start, before = sums.pop()
            sums.append((start, before + size))
        else:
            sums.append((offset, size))
        self._total += size
        while self._total > self._bytes_max and len(sums) > 1:
            self._total -= sums.popleft()[1]
            self.first = sums[0][0]
            self.is_over = True

    def size_from(self, offset: int, end: int) -> int:
        """Return how many bytes there are in [offset, end), to a part of a sum; `end` is what was counted so far."""
        size = 0
        for start, stop, part in self._parts(end):
            if stop <= offset:
                break
            size += part if start >= offset else part * (stop - offset) // (stop - start)
        return size

    def find_within(self, size: int, end: int) -> int:
        """Return the first offset from which on there are `size` bytes until `end`, to a part of a sum."""
        first, left = end, size
        for start, stop, part in self._parts(end):
            if part > left:
                first = stop - (stop - start) * left // part
                break
            left -= part
            first = start
        return first

    def _parts(self, end: int) -> Iterator[tuple[int, int, int]]:
        """Give where each sum begins and ends, and its bytes; the newest first."""
        for start, part in reversed(self._sums):
            yield start, end, part
            end = start


class Tally(Reader):
    """What was counted of one queue, until `until`; it waits for what is on its way."""

    __slots__ = ("_batch", "_broker", "_chores", "_is_counting", "_is_parked", "_queue_ref", "_until", "newest")

    def __init__(self, broker: Broker, chores: Chores, batch: StoredBatch, queue_ref: int, newest: Newest) -> None:
        self.newest = newest
        self._broker = broker
        self._chores = chores
        self._batch = batch
        self._queue_ref = queue_ref
        self._until = newest.first
        self._is_counting = False
        self._is_parked = False

    def size_from(self, offset: int) -> int:
        """Return how many bytes were counted from an offset on."""
        return self.newest.size_from(offset, self._until)

    def find_within(self, size: int) -> int:
        """Return the first offset from which on no more than `size` bytes were counted."""
        return self.newest.find_within(size, self._until)

    def count(self) -> None:
        """Count what came, in steps."""
        if not self._is_counting:
            self._is_counting = True
            self._chores.start(self._count())

    def _count(self) -> Iterator[None]:
        broker, batch = self._broker, self._batch
        end = broker.max_offset(self._queue_ref)
        while self._is_counting and self._until < end:
            if broker.read(self._queue_ref, self._until, batch, READ_COUNT_MAX, READ_BYTES_MAX) == AWAY:
                self._is_parked = True
                broker.park(self._queue_ref, self)
                return
            for i in range(batch.count):
                self.newest.add(batch.queue_offset[i], batch.body_end[i] - batch.body_start[i])
            self._until = batch.next_offset
            batch.clear()
            yield
        self._is_counting = False

    def on_ready(self, now_ms: int) -> bool:  # noqa: ARG002  # the interface says so
        """Messages are here that were waited for."""
        self._stop_waiting()
        self._chores.start(self._count())
        return False

    def stop(self) -> None:
        """Count no more."""
        self._is_counting = False
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._is_parked:
            self._is_parked = False
            self._broker.unpark(self._queue_ref, self)


class Queued:
    """What the limits leave of a light queue for a subscription that is behind.

    Args:
        broker: Where the light queues are.
        rows: Where the limits of single sessions are written down.
        general: What the settings say for all sessions.
    """

    def __init__(self, broker: Broker, rows: RowTable, general: WaitingMax) -> None:
        self.limits = QueuedLimits(rows, general)
        self._broker = broker
        self.chores = Chores(broker)
        self._tallies: dict[tuple[int, int], Tally] = {}  # by queue and limit
        self._batch = StoredBatch(READ_COUNT_MAX)
        self.letting_go: set[bytes] = set()  # clients that are away, and for which messages give way just now
        self._is_looking = False

    @property
    def queue_count(self) -> int:
        """How many queues are counted, for each limit."""
        return len(self._tallies)

    def set_limits(self, general: WaitingMax) -> None:
        """Go by other settings."""
        if general.size != self.limits.general.size:
            self._keep({})
        self.limits.general = general

    def find_first(self, queue_ref: int) -> int:
        """Return the first offset of a queue that is for any that are behind, by the settings; 0 where all of it is."""
        return self._find_first(queue_ref, self.limits.general)

    def find_first_for(self, subscription: Subscription) -> int:
        """Return the first offset that is still for a subscription that is behind, 0 where its whole queue is."""
        return self._find_first(subscription.queue_ref, self.limits.of(subscription.session))

    def _find_first(self, queue_ref: int, limit: WaitingMax) -> int:
        first = 0
        if limit.messages:
            first = max(self._broker.max_offset(queue_ref) - limit.messages, 0)
        tally = self._tallies.get((queue_ref, limit.size))
        return max(first, tally.newest.first) if tally is not None and tally.newest.is_over else first

    def end_of(self, queue_ref: int) -> int:
        """Return the end of a queue."""
        return self._broker.max_offset(queue_ref)

    def size_from(self, queue_ref: int, bytes_max: int, offset: int) -> int:
        """Return how many bytes were counted in a queue from an offset on, where `bytes_max` is the limit."""
        tally = self._tallies.get((queue_ref, bytes_max))
        return 0 if tally is None else tally.size_from(offset)

    def find_within(self, queue_ref: int, bytes_max: int, size: int) -> int:
        """Return the first offset of a queue from which on no more than `size` bytes were counted."""
        tally = self._tallies.get((queue_ref, bytes_max))
        return 0 if tally is None else tally.find_within(size)

    def look(self, behind: Callable[[], Iterator[Behind | None]], let_go: Callable[[bytes], None]) -> None:
        """Count what came where something waits, in steps.

        Args:
            behind: Begins a walk over what may be behind; it has a step where it gives None.
            let_go: Called for each client without a connection that has more waiting than its own limits let: the log
                need not keep that.
        """
        if self.limits.has_bytes and not self._is_looking:
            self._is_looking = True
            self.chores.start(self._look(behind(), let_go), is_long=True)

    def _look(self, behind: Iterator[Behind | None], let_go: Callable[[bytes], None]) -> Iterator[None]:
        try:
            limits = self.limits
            bytes_max = limits.general.size
            tallies: dict[tuple[int, int], Tally] = {}
            away: list[Behind] = []  # of the session that is walked over
            for number, one in enumerate(behind):
                if number % STEP_COUNT == 0:
                    yield
                if one is None:
                    if away and (yield from self._is_over(away, limits.of_client(away[0].client_id))):
                        let_go(away[0].client_id)
                    away = []
                    yield
                    continue
                limit = limits.of_client(one.client_id)
                if one.is_away and limits.is_own(one.client_id):
                    away.append(one)
                if limit.size:
                    self._note(tallies, one, limit.size)
            if bytes_max == limits.general.size:
                self._keep(tallies)
                for tally in list(tallies.values()):
                    tally.count()
                    yield
        finally:
            self._is_looking = False

    def _is_over(self, ones: list[Behind], limit: WaitingMax) -> Generator[None, None, bool]:
        """Find, in steps, whether more waits for a client, by all its subscriptions, than may."""
        count = size = 0
        has_older = False
        for number, one in enumerate(ones):
            if number % STEP_COUNT == STEP_COUNT - 1:
                yield
            count += max(self.end_of(one.queue_ref) - one.position, 0)
            has_older = has_older or self._find_first(one.queue_ref, limit) > one.position
            size += self.size_from(one.queue_ref, limit.size, one.position) if limit.size else 0
        if count <= 1:
            return False
        return has_older or 0 < limit.messages < count or 0 < limit.size < size

    def _note(self, tallies: dict[tuple[int, int], Tally], one: Behind, bytes_max: int) -> None:
        """Have a queue counted from a place on, at least; what was counted before is used again."""
        key = one.queue_ref, bytes_max
        tally = tallies.get(key) or self._tallies.get(key)
        if tally is None or (one.position < tally.newest.first and not tally.newest.is_over):
            newest = Newest(one.position, bytes_max)
            tally = Tally(self._broker, self.chores, self._batch, one.queue_ref, newest)
        tallies[key] = tally

    def _keep(self, tallies: dict[tuple[int, int], Tally]) -> None:
        for key, tally in self._tallies.items():
            if tallies.get(key) is not tally:
                tally.stop()
        self._tallies = tallies


def is_limited(subscription: Subscription) -> bool:
    """Return whether the limits are for a subscription."""
    return bool(subscription.qos) and subscription.group is None and not subscription.is_replay

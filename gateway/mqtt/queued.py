"""How much may wait for a session by one subscription, and where its light queue begins for it then.

How many messages wait, two places in a queue tell. How many bytes, only the records themselves do. So where there is a
limit of bytes, the queues in which something waits are read on every few seconds, each message once, and their sizes
are added up in a few sums a queue. What the limit leaves is right to a sixteenth of it, and to what came since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from core.broker import Broker
from core.lmq.waiters import Reader
from core.message import AWAY, StoredBatch
from gateway.chores import Chores
from gateway.mqtt.session import ABREAST, Session

SUMS = 16  # of a queue at the limit
READ_COUNT_MAX = 256  # messages that are looked at in a step, some 100 us
READ_BYTES_MAX = 1 << 30  # of which only heads are looked at


class Newest:
    """The newest messages of one queue, whose bodies together are within a limit: those from `first` on."""

    __slots__ = ("_bytes_max", "_sums", "_total", "first", "is_over")

    def __init__(self, first: int, bytes_max: int) -> None:
        self.first = first
        self.is_over = False  # what was before `first` is over the limit
        self._bytes_max = bytes_max
        self._total = 0
        self._sums: deque[tuple[int, int]] = deque()  # where each begins, and how many bytes

    @property
    def sum_count(self) -> int:
        """How many sums there are."""
        return len(self._sums)

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
    """What the settings leave of a light queue for a subscription that is behind.

    Args:
        broker: Where the light queues are.
        count_max: Messages that may wait, 0 for any number.
        bytes_max: Bytes of their bodies, 0 for any number.
    """

    def __init__(self, broker: Broker, count_max: int, bytes_max: int) -> None:
        self.count_max = count_max
        self.bytes_max = bytes_max
        self._broker = broker
        self._chores = Chores(broker)
        self._tallies: dict[int, Tally] = {}
        self._batch = StoredBatch(READ_COUNT_MAX)
        self._is_looking = False

    @property
    def queue_count(self) -> int:
        """How many queues are counted."""
        return len(self._tallies)

    def set_limits(self, count_max: int, bytes_max: int) -> None:
        """Go by other limits."""
        self.count_max = count_max
        if bytes_max != self.bytes_max:
            self.bytes_max = bytes_max
            self._keep({})

    def find_first(self, queue_ref: int) -> int:
        """Return the first offset of a queue that is still for those that are behind, 0 where all of it is."""
        first = 0
        if self.count_max:
            first = max(self._broker.max_offset(queue_ref) - self.count_max, 0)
        tally = self._tallies.get(queue_ref)
        return max(first, tally.newest.first) if tally is not None and tally.newest.is_over else first

    def look(self, sessions: Iterable[Session]) -> None:
        """Count what came where something waits, in steps; the sessions may come and go meanwhile."""
        if self.bytes_max and not self._is_looking:
            self._is_looking = True
            self._chores.start(self._look(list(sessions)))

    def _look(self, sessions: list[Session]) -> Iterator[None]:
        try:
            bytes_max = self.bytes_max
            tallies: dict[int, Tally] = {}
            for session in sessions:
                for subscription in list(session.subscriptions.values()):
                    is_limited = subscription.qos and subscription.group is None and not subscription.is_replay
                    if is_limited and subscription.state != ABREAST:
                        self._note(tallies, subscription.queue_ref, subscription.position)
                yield
            if bytes_max == self.bytes_max:
                self._keep(tallies)
                for tally in list(tallies.values()):
                    tally.count()
                    yield
        finally:
            self._is_looking = False

    def _note(self, tallies: dict[int, Tally], queue_ref: int, position: int) -> None:
        """Have a queue counted from a place on, at least; what was counted before is used again."""
        tally = tallies.get(queue_ref) or self._tallies.get(queue_ref)
        if tally is None or (position < tally.newest.first and not tally.newest.is_over):
            tally = Tally(self._broker, self._chores, self._batch, queue_ref, Newest(position, self.bytes_max))
        tallies[queue_ref] = tally

    def _keep(self, tallies: dict[int, Tally]) -> None:
        for queue_ref, tally in self._tallies.items():
            if tallies.get(queue_ref) is not tally:
                tally.stop()
        self._tallies = tallies

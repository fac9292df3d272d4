"""What all doors have together: messages in AMQP's queues, and the deepest of these; channels, subscriptions.

It is found out by a walk in steps, at most every few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterator
from heapq import heappush, heapreplace
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from gateway.admin.oldest import OldestMessages
from gateway.admin.pace import Pace
from gateway.admin.steps import Steps, walk
from gateway.inventory import GroupEntry, QueueEntry

DEEPEST_COUNT = OLDEST_COUNT = REPEATING_COUNT = BEHIND_COUNT = 10  # chosen: each is a series of Prometheus
REPEATED_MAX = 10_000  # queues, and groups, of which it is known how much they had given once more at the walk before

_FAR_MS = 1 << 62  # no message is stored so late
Entry = TypeVar("Entry")
Group = tuple[str, str]
"""Its door and its name."""


class VhostTotals(NamedTuple):
    """Figures of the queues of some virtual hosts together."""

    ready: int = 0
    unacked: int = 0
    readers: int = 0


class Totals(NamedTuple):
    """Figures of all queues together.

    `deepest` are those with most messages, the deepest first; `oldest` those whose first message that is not done was
    stored before others', with that moment, the oldest first; `repeating` and `repeating_groups` those that redelivered
    most messages since the walk before; `by_vhost` are the figures of each virtual host that has messages or readers.
    `sessions_behind` are the sessions that most messages wait for, with how many, and `groups_behind` the groups with
    most lag on all their queues together, those furthest behind first.
    """

    queues: int = 0
    ready: int = 0
    unacked: int = 0
    readers: int = 0
    channels: int = 0
    subscriptions: int = 0
    deepest: tuple[QueueEntry, ...] = ()
    oldest: tuple[tuple[QueueEntry, int], ...] = ()
    inflight: int = 0  # messages that MQTT sessions were sent and did not acknowledge
    by_vhost: tuple[tuple[str, VhostTotals], ...] = ()
    repeating: tuple[QueueEntry, ...] = ()
    repeating_groups: tuple[GroupEntry, ...] = ()
    sessions_behind: tuple[tuple[str, int], ...] = ()  # client
    groups_behind: tuple[tuple[Group, int], ...] = ()

    def within(self, vhosts: Collection[str]) -> VhostTotals:
        """Return the figures of some virtual hosts together."""
        found = [one for name, one in self.by_vhost if name in vhosts]
        return VhostTotals(*(sum(figures) for figures in zip(*found, strict=True)))


class QueueSum(NamedTuple):
    """Some queues of a virtual host together, of which all is known, that nobody reads and of which nothing is away."""

    vhost: str
    ready: int
    first: tuple[tuple[QueueEntry, int], ...]
    """Those of them that may be among the deepest or the oldest, each with the moment its first message was stored."""


class TotalsKeeper:
    """Counts when it is asked, unless that was just done; all that ask meanwhile wait for one walk.

    Args:
        queues: Begins a walk over the queues, of which those may be left out in which nothing is and that nobody reads.
        channels: Begins a walk over the connections, which gives the number of channels of each.
        sessions: Begins a walk over the sessions, which gives of each its subscriptions and its messages in flight.
        ages: Says how old the first message of a queue is; None where that is not told.
        pace: How often there is a walk.
        queue_count: Says how many queues there are; None: as many as a walk gives.
        groups: Begins a walk over the groups that were given messages once more since the start.
        backlogs: Begins a walk over the sessions that messages wait for, with how many.
        lags: Begins a walk over all groups.
    """

    def __init__(
        self,
        queues: Callable[[], Iterator[QueueEntry | QueueSum | None]],
        channels: Callable[[], Iterator[int]],
        sessions: Callable[[], Iterator[tuple[int, int]]],
        ages: OldestMessages | None = None,
        pace: Pace | None = None,
        queue_count: Callable[[], int] | None = None,
        groups: Callable[[], Iterator[GroupEntry | None]] = lambda: iter(()),
        backlogs: Callable[[], Iterator[tuple[str, int] | None]] = lambda: iter(()),
        lags: Callable[[], Iterator[GroupEntry | None]] = lambda: iter(()),
    ) -> None:
        self._queues = queues
        self._channels = channels
        self._sessions = sessions
        self._ages = ages
        self.latest = Totals()
        self._pace = pace or Pace()
        self._queue_count = queue_count
        self._groups = groups
        self._backlogs = backlogs
        self._lags = lags
        self._repeated: dict[Hashable, int] = {}  # by light queue, at the walk before
        self._repeated_groups: dict[Hashable, int] = {}  # by group and light queue
        self._at_s = float("-inf")
        self._lock = asyncio.Lock()

    async def find(self) -> Totals:
        """Return the figures, of some seconds ago at most."""
        async with self._lock:
            if self._pace.is_due(self, self._at_s):
                steps = Steps()
                self.latest = await self._count(steps)
                self._at_s = monotonic()
                self._pace.note(self, steps.cost_s)
        return self.latest

    async def _count(self, steps: Steps) -> Totals:
        queues = 0
        by_vhost: dict[str, list[int]] = {}
        first = _First()
        repeating = _Repeating[QueueEntry](self._repeated)
        if self._ages is not None:
            self._ages.begin()
        async for found in walk(self._queues(), steps):
            queues += 1
            if isinstance(found, QueueSum):
                by_vhost.setdefault(found.vhost, [0, 0, 0])[0] += found.ready
                for entry, stored_ms in found.first:
                    first.note(entry, stored_ms)
                continue
            assert isinstance(found, QueueEntry)
            figures = by_vhost.setdefault(found.vhost, [0, 0, 0])
            figures[0] += found.ready or 0
            figures[1] += found.unacked or 0
            figures[2] += found.readers
            repeating.note(found.light_queue, found.again, queues, found)
            first.note(found, self._ages.stored_ms(found) if self._ages is not None and found.first_waiting else 0)
        self._repeated = repeating.counts
        subscriptions = inflight = 0
        async for filters, sent in walk(self._sessions(), steps):
            subscriptions += filters
            inflight += sent
        ready, unacked, readers = (sum(figures[at] for figures in by_vhost.values()) for at in range(3))
        return Totals(
            queues if self._queue_count is None else self._queue_count(),
            ready,
            unacked,
            readers,
            await _add_up(self._channels(), steps),
            subscriptions,
            *first.find(),
            inflight,
            tuple((vhost, VhostTotals(*figures)) for vhost, figures in by_vhost.items()),
            repeating.first(),
            await self._find_repeating_groups(steps),
            await _find_most(self._backlogs(), steps),
            await self._find_groups_behind(steps),
        )

    async def _find_repeating_groups(self, steps: Steps) -> tuple[GroupEntry, ...]:
        repeating = _Repeating[GroupEntry](self._repeated_groups)
        number = 0
        async for entry in walk(self._groups(), steps):
            number += 1
            repeating.note((entry.door, entry.group, entry.light_queue), entry.redelivered, number, entry)
        self._repeated_groups = repeating.counts
        return repeating.first()

    async def _find_groups_behind(self, steps: Steps) -> tuple[tuple[Group, int], ...]:
        lags: dict[Group, int] = {}
        async for entry in walk(self._lags(), steps):
            if entry.lag:
                group = entry.door, entry.group
                lags[group] = lags.get(group, 0) + entry.lag
        return await _find_most(iter(lags.items()), steps)


class _First:
    """The queues that are deepest and oldest."""

    def __init__(self) -> None:
        self._deepest: list[tuple[int, int, QueueEntry]] = []
        self._oldest: list[tuple[int, int, QueueEntry]] = []
        self._number = 0

    def note(self, entry: QueueEntry, stored_ms: int) -> None:
        """Take in the next of the walk, whose first message was stored then; 0: that is not known."""
        self._number += 1
        _note(self._deepest, DEEPEST_COUNT, depth_of(entry), self._number, entry)
        if stored_ms:
            _note(self._oldest, OLDEST_COUNT, _FAR_MS - stored_ms, self._number, entry)

    def find(self) -> tuple[tuple[QueueEntry, ...], tuple[tuple[QueueEntry, int], ...]]:
        """Return the deepest, and the oldest with those moments."""
        return (
            tuple(entry for _, _, entry in sorted(self._deepest, reverse=True)),
            tuple((entry, _FAR_MS - rank) for rank, _, entry in sorted(self._oldest, reverse=True)),
        )


class _Repeating(Generic[Entry]):
    """Finds the queues or groups of which consumers got most once more since the walk before.

    Args:
        before: How often that was by key, since the start, at the walk before.
    """

    def __init__(self, before: dict[Hashable, int]) -> None:
        self._before = before
        self._found: list[tuple[int, int, Entry]] = []
        self.counts: dict[Hashable, int] = {}  # now

    def note(self, key: Hashable, again: int, number: int, entry: Entry) -> None:
        """Take in the next of the walk, whose consumers got messages once more `again` times since the start."""
        if not again:
            return
        if len(self.counts) < REPEATED_MAX:
            self.counts[key] = again
        more = again - self._before.get(key, 0)
        _note(self._found, REPEATING_COUNT, max(more, 0), number, entry)

    def first(self) -> tuple[Entry, ...]:
        """Return what was found, the first the one that gave most."""
        return tuple(entry for _, _, entry in sorted(self._found, key=lambda one: one[:2], reverse=True))


def depth_of(entry: QueueEntry) -> int:
    """Return how many messages a queue has, those of consumers too."""
    return (entry.ready or 0) + (entry.unacked or 0)


def _note(first: list[tuple[int, int, Entry]], count_max: int, rank: int, number: int, entry: Entry) -> None:
    """Take in one that may be among the `count_max` of the highest rank, which is 0 for one that is not to be."""
    if rank and len(first) < count_max:
        heappush(first, (rank, -number, entry))
    elif rank and rank > first[0][0]:
        heapreplace(first, (rank, -number, entry))


async def _find_most(things: Iterator[tuple[Entry, int] | None], steps: Steps) -> tuple[tuple[Entry, int], ...]:
    """Return the first of what has most, each with how much, which is above 0."""
    found: list[tuple[int, int, Entry]] = []
    number = 0
    async for thing, count in walk(things, steps):
        number += 1
        _note(found, BEHIND_COUNT, count, number, thing)
    return tuple((thing, count) for count, _, thing in sorted(found, key=lambda one: one[:2], reverse=True))


async def _add_up(counts: Iterator[int], steps: Steps) -> int:
    total = 0
    async for count in walk(counts, steps):
        total += count
    return total

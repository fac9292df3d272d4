"""How fast queues go: what each was given, and what left it, between two looks.

Nothing is counted where messages go by. Every few seconds the ends of all queues are compared with those of the last
look: so it is known which grew, at a cost of about 10 ns for one that did not. What leaves an AMQP queue is looked at
where a client consumes or the API has told of it lately; elsewhere nothing leaves but what expires.

Source: docs/decisions/0057-lists-kept-sorted.md.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from itertools import repeat
from time import monotonic, time_ns
from typing import NamedTuple

from core.broker import Broker
from core.flows import Outflow
from gateway.admin.kept_looks import KeptLooks
from gateway.admin.steps import Steps, walk
from gateway.admin.trail import Trail
from gateway.amqp.inventory import count_again, count_given, count_messages
from gateway.amqp.queue_pops import GROUP
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue
from gateway.inventory import PlaceEntry

INTERVAL_S = 5.0  # between two looks, as RabbitMQ's own statistics have it
SHARE = 100  # times what a look cost the processor, at least, until the next one: looks take 1 % of it at most
MQTT = "mqtt"
BLOCK = 2_048  # queues that are compared in one step
GROWN_MAX = 20_000  # queues whose rate is kept: those that grew most
WATCHED_MAX = 10_000  # queues that consumers read, or that were told of lately; chosen: each look passes over them
TOLD_S = 60.0  # so long a queue is watched that the API told of
CONSUMERS_MAX = 8  # of a queue, that are named where its place is noted; chosen: as many as a line can tell
Placed = tuple[VirtualHost, SharedQueue, str]  # with a consumer


class Level(NamedTuple):
    """What is known of a queue at a moment."""

    at_s: float
    given: int  # messages that ever came
    ready: int
    unacked: int
    again: int = 0  # times that messages were given once more


class Rates(NamedTuple):
    """Messages a second."""

    given: float = 0.0  # that came
    delivered: float = 0.0  # that consumers got
    left: float = 0.0  # that were acknowledged, or ended in another way
    ready: float = 0.0  # growth of the messages that wait
    unacked: float = 0.0  # growth of the messages that consumers have
    again: float = 0.0  # that consumers got once more
    is_known: bool = True  # False: all but `given` were not looked at yet, and clients took something of late


STANDING = Rates()
NOT_WATCHED = None, None


class QueueActivity:
    """Looks at queues every few seconds.

    Args:
        broker: Where they are.
        consumed: Begins a walk over the AMQP queues that have consumers, in any order and as often as it likes.
        trail: Where it is noted how far readers are.
        places: Begins a walk over the places of other readers.
        kept_looks: Some of these are kept there for later processes.
    """

    def __init__(
        self,
        broker: Broker,
        consumed: Callable[[], Iterable[Placed | None]],
        trail: Trail,
        places: Callable[[], Iterable[PlaceEntry | None]],
        kept_looks: KeptLooks,
    ) -> None:
        self._kept_looks = kept_looks
        self._broker = broker
        self._consumed = consumed
        self._trail = trail
        self._places = places
        self._blocks: list[array[int]] = []
        self._looked_at_s = 0.0
        self._next_at_s = 0.0
        self._is_looking = False
        self._mqtt = Outflow(broker.flows)
        self._grown: dict[int, float] = {}  # by queue: messages a second
        self._told: dict[SharedQueue, tuple[VirtualHost, float]] = {}
        self._watched: dict[SharedQueue, tuple[Level, Rates | None]] = {}  # the second time it is known how fast
        self._watched_refs: set[int] = set()  # their light queues

    def is_due(self) -> bool:
        """Return whether it is time for another look."""
        return not self._is_looking and monotonic() >= self._next_at_s

    def mqtt_outflow(self) -> Outflow:
        """Return what MQTT's clients took, at any QoS: its door counts it, all of it is of the one topic space."""
        door, found = self._broker.metrics.door(MQTT), self._mqtt
        found.delivered, found.redelivered, found.acked = door.messages_out, door.redelivered, door.acknowledged
        return found

    async def look(self) -> None:
        """Look at all queues, in steps."""
        if self._is_looking:
            return
        self._is_looking = True
        began_s, steps = monotonic(), Steps()
        if self.mqtt_outflow().has_moved():
            self._broker.flows.watch(self._mqtt)
        self._broker.flows.look(max(began_s - self._looked_at_s, 1e-3))
        try:
            await self._kept_looks.load(steps)
            await self._find_grown(began_s, steps)
            await self._watch(steps)
            await self._note_places(steps)
            await self._kept_looks.keep(time_ns() // 1_000_000, steps)
        finally:
            self._is_looking = False
            self._looked_at_s = began_s
            self._next_at_s = began_s + max(INTERVAL_S, SHARE * steps.cost_s)

    async def _find_grown(self, now_s: float, steps: Steps) -> None:
        passed_s, is_first = max(now_s - self._looked_at_s, 1e-3), self._looked_at_s == 0
        found: dict[int, float] = {}
        for start in range(0, self._broker.queue_count(), BLOCK):
            found.update((ref, count / passed_s) for ref, count in self._compare(start))
            await steps.rest()
        if len(found) > GROWN_MAX:
            found = dict(nlargest(GROWN_MAX, found.items(), key=lambda item: item[1]))
        self._grown = {} if is_first else found

    def _compare(self, start: int) -> list[tuple[int, int]]:
        """Return which queues of a block grew, and by how much."""
        now = array("q", bytes(8 * BLOCK))
        self._broker.engine.next_offsets(start, now)
        block = start // BLOCK
        if block == len(self._blocks):
            self._blocks.append(array("q", bytes(8 * BLOCK)))
        before, self._blocks[block] = self._blocks[block], now
        if now == before:
            return []
        return [(start + at, new - old) for at, (new, old) in enumerate(zip(now, before, strict=True)) if new > old]

    async def _watch(self, steps: Steps) -> None:
        """Note the figures of queues that consumers read, or that were told of lately."""
        until_s = monotonic() - TOLD_S
        self._told = {queue: told for queue, told in self._told.items() if told[1] >= until_s}
        found: dict[SharedQueue, tuple[Level, Rates | None]] = {}
        consumers: dict[SharedQueue, list[str]] = {}
        refs: set[int] = set()
        for places in (self._consumed(), [(vhost, queue, "") for queue, (vhost, _) in self._told.items()]):
            async for vhost, queue, consumer in walk(places, steps):
                if consumer and len(names := consumers.setdefault(queue, [])) < CONSUMERS_MAX:
                    names.append(consumer)
                if queue not in found and not queue.is_deleted and len(found) < WATCHED_MAX:
                    level = self._level_of(vhost, queue)
                    known = self._watched.get(queue)
                    found[queue] = (level, None if known is None else find_rates(known[0], level))
                    refs.add(self._broker.find_queue(queue.light_name))
        self._watched, self._watched_refs = found, refs
        now_ms = time_ns() // 1_000_000
        for queue in found:
            self._note_place(queue, ", ".join(consumers.get(queue, ())), now_ms)
            await steps.rest()

    def _note_place(self, queue: SharedQueue, consumers: str, now_ms: int) -> None:
        if not queue.is_open or queue.is_deleted:
            return
        reader = queue.light_name, GROUP
        place = self._broker.pop.resting_at(*reader, -1)
        pop = self._broker.pop.find(*reader) if place < 0 else None
        if place >= 0:
            self._trail.note(reader, now_ms, place, place, consumers)
        elif pop is not None:
            self._trail.note(reader, now_ms, pop.next_offset, pop.floor, consumers)

    async def _note_places(self, steps: Steps) -> None:
        now_ms = time_ns() // 1_000_000
        async for place in walk(self._places(), steps):
            self._trail.note((place.light_queue, place.reader), now_ms, place.next_offset, place.floor, place.by)

    def _level_of(self, vhost: VirtualHost, queue: SharedQueue) -> Level:
        ready, unacked = count_messages(self._broker, vhost, queue)
        queue_ref = self._broker.find_queue(queue.light_name)
        return Level(monotonic(), count_given(self._broker, queue, queue_ref), ready, unacked, count_again(queue))

    def rate_into(self, queue_ref: int) -> float:
        """Return how many messages a second a light queue was given, of late."""
        return self._grown.get(queue_ref, 0.0)

    def rates_of_refs(self, refs: Sequence[int]) -> list[float]:
        """Return what `rate_into` says of each of some light queues."""
        return list(map(self._grown.get, refs, repeat(0.0)))

    def rates_into(self, first: int, end: int) -> list[float]:
        """Return what `rate_into` says of each light queue from one number to before another."""
        grown = self._grown
        return [grown.get(queue_ref, 0.0) for queue_ref in range(first, end)]

    def rates_of(self, vhost: VirtualHost, queue: SharedQueue, queue_ref: int) -> Rates:
        """Return how fast an AMQP queue goes, which is that light queue; it is watched for a while from now on.

        Until there are two looks it is only known that nothing left it where no client took anything of its host.
        """
        if queue in self._told or len(self._told) < WATCHED_MAX:
            self._told[queue] = (vhost, monotonic())
        rates, outflow = self._rates_now(queue, self.rate_into(queue_ref)), vhost.outflow
        if self._watched.get(queue, NOT_WATCHED)[1] is None and (outflow.is_moving or outflow.has_moved()):
            return rates._replace(is_known=False)
        return rates

    def _rates_now(self, queue: SharedQueue, given: float) -> Rates:
        _, rates = self._watched.get(queue, NOT_WATCHED)
        if rates is None:
            return Rates(given=given, ready=given) if given else STANDING
        return rates

    def rates_of_many(
        self, figure: Callable[[Rates], float], find_queues: Callable[[], Sequence[SharedQueue]], refs: Sequence[int]
    ) -> list[float]:
        """Return one figure of what `rates_of` says of some AMQP queues; none is watched for it.

        Args:
            figure: Chooses it.
            find_queues: Gives them.
            refs: Their light queues.
        """
        given = self.rates_of_refs(refs)
        if not any(given) and self._watched_refs.isdisjoint(refs):
            return given  # nothing moves
        return [figure(self._rates_now(*each)) for each in zip(find_queues(), given, strict=True)]


def find_rates(before: Level, now: Level) -> Rates:
    """Return how fast a queue went between two moments."""
    passed_s = max(now.at_s - before.at_s, 1e-3)
    left = [level.given - level.ready - level.unacked for level in (before, now)]
    got = [level.given - level.ready + level.again for level in (before, now)]
    return Rates(
        given=max(now.given - before.given, 0) / passed_s,
        delivered=max(got[1] - got[0], 0) / passed_s,
        left=max(left[1] - left[0], 0) / passed_s,
        ready=(now.ready - before.ready) / passed_s,
        unacked=(now.unacked - before.unacked) / passed_s,
        again=max(now.again - before.again, 0) / passed_s,
    )

"""AMQP's queues, and the light queues of the other doors, as parts of long lists."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from core.broker import Broker
from core.lmq.queue_name import AMQP, LIGHT_PREFIX, MQTT, parse_queue_name
from gateway.admin.rosters.roster import Part
from gateway.admin.rosters.runs import Runs
from gateway.amqp.inventory import count_messages
from gateway.amqp.queue_rows import QueueRows
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue
from gateway.inventory import text_of

OFFSETS = frozenset({"kept", "next_offset"})  # columns that a next offset is the most of
COUNTS = {"messages": (0, 1), "messages_ready": (0,), "messages_unacknowledged": (1,)}
RATES_IN = frozenset({"rate_in", "message_stats.publish_details.rate"})
READERS = frozenset({"readers", "consumers"})
SAME = frozenset({"vhost", "door"})  # columns that all queues of a virtual host have the same in
LOOKS_A_STEP = 1_024  # keys, of which most cost 0.1 us
MQTT_PREFIX = LIGHT_PREFIX + MQTT + b"%"
AMQP_PREFIX = LIGHT_PREFIX + AMQP + b"%"
_PREFIX_BYTES = len(MQTT_PREFIX)
_SLASHES = bytes.maketrans(b"%", b"/")
AmqpPlace = tuple[VirtualHost, SharedQueue]
LightPlace = tuple[str, int]  # door and light queue
Rates = Callable[[Sequence[int]], Sequence[float]]  # of light queues
Tell = Callable[[int, int], Sequence[object]]  # what light queues have, from one number to before another


class AmqpPart(Part[AmqpPlace]):
    """The queues of a virtual host, which keeps them in the order they came.

    Args:
        vhost: The virtual host.
        rows: Its queues with their numbers, which nobody else uses.
        rates: Says of some light queues how many messages a second each was given of late.
    """

    names_at_once = LOOKS_A_STEP

    def __init__(self, vhost: VirtualHost, rows: QueueRows, rates: Rates) -> None:
        self._vhost = vhost
        self._rates = rates
        self._rows = rows
        self._empty_at = array("q")  # by number: the next offset at which nothing was in a queue

    def arrivals(self) -> Iterator[None]:
        """Take those that came after the last one that is still there."""
        for _ in self._rows.take_in():
            self._take_in()
            yield
        self._take_in()
        yield

    def _take_in(self) -> None:
        self._empty_at.extend([-1] * (len(self._rows) - len(self._empty_at)))
        self.size = len(self._empty_at)

    def alive(self) -> int:
        """Return how many there are."""
        return len(self._vhost)

    def name(self, number: int) -> str:
        """Return what clients call a queue."""
        return self._rows.queues[number].name

    def names(self, first: int, end: int) -> str:
        """Return what clients call some queues."""
        names = "\n".join([queue.name for queue in self._rows.queues[first:end]])
        return names if names.count("\n") == end - first - 1 else super().names(first, end)

    def figures(self, column: str, first: int, end: int) -> Sequence[object] | None:
        """Return what queues have in a column that is quick to tell."""
        if column in COUNTS:
            return self._count(COUNTS[column], first, end)
        if column in RATES_IN:
            return self._rates(self._rows.refs(first, end))
        if column in READERS:
            return [queue.reader_count() for queue in self._rows.queues[first:end]]
        if column in SAME:
            return [self._vhost.name if column == "vhost" else "amqp"] * (end - first)
        if column == "kept":
            return self._count_kept(first, end)
        return self._rows.next_offsets_now(first, end).tolist() if column == "next_offset" else None

    def _count(self, which: tuple[int, ...], first: int, end: int) -> Sequence[int]:
        """Return how many messages queues have; one that was empty and was given none is not asked."""
        offsets, known = self._rows.next_offsets_now(first, end), self._empty_at[first:end]
        counts = [0] * len(offsets)
        if offsets == known:
            return counts
        self._empty_at[first:end] = offsets
        for at, queue in self._may_have(self._rows.queues[first:end], offsets, known):
            counted = self._ask(queue)
            counts[at] = sum(counted[one] for one in which)
            if any(counted) or not queue.is_open or queue.terms.priority_max:  # levels are counted elsewhere
                self._empty_at[first + at] = -1
        return counts

    @staticmethod
    def _may_have(
        queues: list[SharedQueue], offsets: array[int], known: array[int]
    ) -> Iterable[tuple[int, SharedQueue]]:
        """Return the queues, with their places, that were given messages; `known` is at which offset each was empty."""
        return [
            (at, queue)
            for at, (queue, offset, empty_at) in enumerate(zip(queues, offsets, known, strict=True))
            if offset != empty_at and (offset > queue.first_offset or queue.terms.priority_max)
        ]

    def _ask(self, queue: SharedQueue) -> tuple[int, int]:
        return count_messages(self._vhost.broker, self._vhost, queue)

    def _count_kept(self, first: int, end: int) -> Sequence[int]:
        """Return how many messages light queues keep."""
        counts = self._rows.next_offsets_now(first, end).tolist()
        if any(counts):
            for at, ref in enumerate(self._rows.refs(first, end)):
                counts[at] -= self._vhost.broker.min_offset(ref) if counts[at] > 0 else 0
        return counts

    def at_most(self, column: str, first: int, end: int) -> Sequence[int] | None:
        """Return the next offsets of queues: none has more messages than ever came, but what lies in levels."""
        is_known = column == "kept" or (column in COUNTS and not self._vhost.broker.detours.levels.asked)
        return self._rows.next_offsets_now(first, end) if is_known else None

    def take(self, number: int) -> AmqpPlace | None:
        """Return a queue with its virtual host; None where it is deleted."""
        queue = self._rows.queues[number]
        return None if queue.is_deleted else (self._vhost, queue)


class FiltersPart(Part[LightPlace]):
    """The light queues of MQTT's filters, which are never gone: a number of the store each.

    Args:
        broker: Where they are.
        door: What MQTT's door is called.
        quick: The columns of which it is known at once what many queues have, and how.
    """

    names_at_once = LOOKS_A_STEP

    def __init__(self, broker: Broker, door: str, quick: Mapping[str, Tell]) -> None:
        self._broker = broker
        self._door = door
        self._quick = quick
        self._looked = 0
        self._refs = Runs()
        self._read = 0, 0, b""  # things, from one number to before another, and their keys

    def arrivals(self) -> Iterator[None]:
        """Look at the numbers that were given since the last time."""
        while self._looked < (end := self._broker.queue_count()):
            first, self._looked = self._looked, min(end, self._looked + LOOKS_A_STEP)
            lines = self._broker.queue_lines(first, self._looked, MQTT_PREFIX)
            if lines:
                self._read = self.size, self.size + self._looked - first, lines
                self._refs.add(first, self._looked - first)
            elif not self._broker.queue_lines(first, self._looked, AMQP_PREFIX):  # not all are others
                for ref in range(first, self._looked):
                    if self._broker.queue_key(ref).startswith(MQTT_PREFIX):
                        self._refs.add(ref, 1)
            self.size = len(self._refs)
            yield

    def alive(self) -> int:
        """Return how many there are."""
        return self.size

    def name(self, number: int) -> str:
        """Return what the door's clients call a queue."""
        return told_name(self._broker.queue_key(self._refs[number]))

    def names(self, first: int, end: int) -> str:
        """Return what the door's clients call some queues."""
        if self._read[:2] == (first, end):
            return told_names(self._read[2])
        lines = b""
        if self._refs[end - 1] - self._refs[first] == end - 1 - first:
            lines = self._broker.queue_lines(self._refs[first], self._refs[end - 1] + 1, MQTT_PREFIX)
        return told_names(lines) if lines else super().names(first, end)

    def figures(self, column: str, first: int, end: int) -> Sequence[object] | None:
        """Return what queues have in a column that is quick to tell."""
        ref, tell = self._refs[first], self._quick.get(column)
        if tell is None or self._refs[end - 1] - ref != end - 1 - first:
            return None
        return tell(ref, ref + end - first)

    def at_most(self, column: str, first: int, end: int) -> Sequence[int] | None:
        """Return the next offsets of queues: none keeps more messages than ever came."""
        ref, count = self._refs[first], end - first
        if column not in OFFSETS or self._refs[end - 1] - ref != count - 1:
            return None
        offsets = array("q", bytes(8 * count))
        self._broker.engine.next_offsets(ref, offsets)
        return offsets

    def take(self, number: int) -> LightPlace:
        """Return a queue."""
        return self._door, self._refs[number]


def told_names(lines: bytes) -> str:
    """Return what clients call the light queues of some filters, each on a line.

    Args:
        lines: Their keys without the prefix, a line break before each.
    """
    if b"|" in lines:
        plain = lines.replace(b"|p", b"+").replace(b"|h", b"#")
        if b"|" in plain:  # there are other escapes
            return "\n".join([told_name(MQTT_PREFIX + key).replace("\n", " ") for key in lines.split(b"\n")[1:]])
        lines = plain
    return lines[1:].translate(_SLASHES).decode("utf-8", "backslashreplace")


def told_name(key: bytes) -> str:
    """Return what clients call a light queue of MQTT or RocketMQ; of a long one only the digits are known."""
    if not key.startswith(MQTT_PREFIX):
        return text_of(key)
    if b"|" not in key:  # nothing is escaped
        return key[_PREFIX_BYTES:].replace(b"%", b"/").decode("utf-8", "backslashreplace")
    parsed = parse_queue_name(key)
    return text_of(key if parsed is None else parsed[1][0])


class TopicsPart(Part[LightPlace]):
    """The queues of RocketMQ's topics, which are few: all are looked at each time, for a topic may go and come again.

    Args:
        door: Whose they are.
        walk: Begins a walk over the queues that there are, by their numbers in the store; None is a look in vain.
        broker: Where they are.
    """

    def __init__(self, broker: Broker, door: str, walk: Callable[[], Iterator[int | None]]) -> None:
        self._broker = broker
        self._door = door
        self._walk = walk
        self._refs = array("i")
        self._known: dict[int, bool] = {}  # whether a queue was there at the last look

    def arrivals(self) -> Iterator[None]:
        """Look at all of them."""
        found: set[int] = set()
        for ref in self._walk():
            if ref is not None:
                found.add(ref)
                if ref not in self._known:
                    self._refs.append(ref)
                self._known[ref] = True
            yield
        for ref in self._known:
            self._known[ref] = ref in found
        self.size = len(self._refs)

    def alive(self) -> int:
        """Return how many there are."""
        return sum(self._known.values())

    def name(self, number: int) -> str:
        """Return what clients call a queue."""
        return told_name(self._broker.queue_key(self._refs[number]))

    def take(self, number: int) -> LightPlace | None:
        """Return a queue; None where its topic is deleted."""
        ref = self._refs[number]
        return (self._door, ref) if self._known[ref] else None

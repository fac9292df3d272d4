"""AMQP's queues, and the light queues of the other doors, as parts of long lists."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import sub
from typing import Any

from core.broker import Broker
from core.lmq.called import LongNames
from core.lmq.queue_name import AMQP, LIGHT_PREFIX, MQTT
from gateway.admin.rosters.held_figures import HeldFigures
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.queue_columns import AmqpPlace, FindColumn, Flowing, Holding, Pacing, QueueColumn, Standing
from gateway.admin.rosters.rows_part import RowsPart
from gateway.admin.rosters.runs import Runs
from gateway.amqp.queues import VirtualHost
from gateway.inventory import text_of

OFFSETS = frozenset({"kept", "next_offset", "first_offset"})  # columns that a next offset is the most of
COUNTS = {
    "messages": Holding(lambda held: held.messages(), is_offset=True),
    "messages_ready": Holding(lambda held: held.ready, is_offset=True),
    "messages_unacknowledged": Holding(lambda held: held.unacked, is_offset=True),
}
SAME = frozenset({"vhost", "door"})  # columns that all queues of a virtual host have the same in
LOOKS_A_STEP = 1_024  # keys, of which most cost 0.1 us
MQTT_PREFIX = LIGHT_PREFIX + MQTT + b"%"
AMQP_PREFIX = LIGHT_PREFIX + AMQP + b"%"
_PREFIX_BYTES = len(MQTT_PREFIX)
_SLASHES = bytes.maketrans(b"%", b"/")
MANY = 1 << 62  # more than any queue has
LightPlace = tuple[str, int]  # door and light queue
Tell = Callable[[int, int], Sequence[object]]  # what light queues have, from one number to before another


class AmqpPart(RowsPart[AmqpPlace]):
    """The queues of a virtual host, which keeps them in the order they came.

    Args:
        vhost: The virtual host.
        find_column: Says how a column is told that is none of those that are known here.
    """

    def __init__(self, vhost: VirtualHost, find_column: FindColumn) -> None:
        super().__init__(vhost)
        self._find_column = find_column
        self._held = HeldFigures(vhost)

    def name(self, number: int) -> str:
        """Return what clients call a queue."""
        return self._rows.queues[number].name

    def names(self, first: int, end: int) -> str:
        """Return what clients call some queues."""
        return self._rows.names(first, end)

    def figures(self, column: str, first: int, end: int) -> Sequence[object] | None:
        """Return what queues have in a column that is quick to tell."""
        if column in SAME:
            return [self._vhost.name if column == "vhost" else "amqp"] * (end - first)
        if column in OFFSETS:
            return self._tell_offsets(column, first, end)
        found = self._find_told(column)
        return None if found is None else self._tell(found, first, end)

    def _find_told(self, column: str) -> QueueColumn | None:
        return COUNTS.get(column) or self._find_column(column)

    def _tell(self, column: QueueColumn, first: int, end: int) -> Sequence[Any]:
        if isinstance(column, Flowing):
            return self._ask_used(column, first, end)
        if isinstance(column, Holding):
            held = self._held.read(first, end, is_seen=column.is_seen)
            return column.tell(held)
        if isinstance(column, Pacing):
            return column.tell(lambda: self._rows.queues[first:end], self._rows.refs(first, end))
        return column.tell(self._rows.queues[first:end])

    def scattered(self, column: str, numbers: Sequence[int]) -> Sequence[Any] | None:
        """Return what queues have in a column of which all is known of them."""
        found = self._find_told(column)
        if not isinstance(found, Holding | Standing):
            return None
        queues = self._rows.queues
        if isinstance(found, Standing):
            return found.tell([queues[number] for number in numbers])
        held = self._held.pick(numbers, is_seen=found.is_seen)
        return None if held is None else found.tell(held)

    def is_cheap(self, column: str, first: int, end: int) -> bool:
        """Return whether no queue is asked for its messages."""
        if column in SAME or column in OFFSETS:
            return True
        found = self._find_told(column)
        if isinstance(found, Holding):
            return self._held.is_known(first, end, is_seen=found.is_seen)
        return isinstance(found, Standing | Pacing)

    def _ask_used(self, column: Flowing, first: int, end: int) -> Sequence[float]:
        """Return what queues have in a column; one that was never given a message is not asked."""
        offsets = self._rows.next_offsets_now(first, end)
        told: list[float] = [0] * len(offsets)
        if self._vhost.broker.detours.levels.asked or any(offsets):
            for at, (offset, queue) in enumerate(zip(offsets, self._rows.queues[first:end], strict=True)):
                if offset > 0 or queue.terms.priority_max:
                    told[at] = column.tell(self._vhost, queue)
        return told

    def _tell_offsets(self, column: str, first: int, end: int) -> Sequence[int]:
        """Return the next offsets of light queues, the first ones that are kept, or how many messages those are."""
        if column == "first_offset":
            return self._rows.first_offsets_now(first, end)
        offsets = self._rows.next_offsets_now(first, end)
        return offsets if column == "next_offset" else subtract(offsets, self._rows.first_offsets_now(first, end))

    def at_most(self, column: str, first: int, end: int) -> Sequence[int] | None:
        """Return the next offsets of queues: none has more messages than ever came, but what lies in levels.

        Where all is known of queues, that is quicker to tell.
        """
        found = None if column in OFFSETS else self._find_told(column)
        if column not in OFFSETS:
            if not isinstance(found, Flowing | Holding) or self._vhost.broker.detours.levels.asked:
                return None
            if isinstance(found, Holding) and self._held.is_known(first, end, is_seen=found.is_seen):
                return None
        offsets = self._rows.next_offsets_now(first, end)
        if not isinstance(found, Flowing | Holding) or found.is_offset:
            return offsets
        return [MANY if offset else 0 for offset in offsets]

    def take(self, number: int) -> AmqpPlace | None:
        """Return a queue with its virtual host; None where it is deleted."""
        queue = self._find(number)
        return None if queue is None else (self._vhost, queue)


def subtract(numbers: Sequence[int], others: Sequence[int]) -> array[int]:
    """Return by how much each of some numbers is more than the other in its place."""
    return array("q", map(sub, numbers, others))


class FiltersPart(Part[LightPlace]):
    """The light queues of MQTT's filters, which are never gone: a number of the store each.

    Args:
        broker: Where they are.
        door: What MQTT's door is called.
        quick: The columns of which it is known at once what many queues have, and how.
        used: Those that a queue has 0 in that no message ever came to, and what others have.
    """

    names_at_once = LOOKS_A_STEP

    def __init__(
        self, broker: Broker, door: str, quick: Mapping[str, Tell], used: Mapping[str, Callable[[int], float]]
    ) -> None:
        self._broker = broker
        self._door = door
        self._quick = quick
        self._used = used
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
        return told_name(self._broker.queue_key(self._refs[number]), self._broker.long_names)

    def names(self, first: int, end: int) -> str:
        """Return what the door's clients call some queues."""
        if self._read[:2] == (first, end):
            return told_names(self._read[2], self._broker.long_names)
        lines = b""
        if self._refs[end - 1] - self._refs[first] == end - 1 - first:
            lines = self._broker.queue_lines(self._refs[first], self._refs[end - 1] + 1, MQTT_PREFIX)
        return told_names(lines, self._broker.long_names) if lines else super().names(first, end)

    def figures(self, column: str, first: int, end: int) -> Sequence[object] | None:
        """Return what queues have in a column that is quick to tell."""
        tell, tell_used = self._quick.get(column), self._used.get(column)
        ref = self._find_row(first, end)
        if ref < 0 or (tell is None and tell_used is None):
            return None
        if tell is not None:
            return tell(ref, ref + end - first)
        assert tell_used is not None
        offsets = self._next_offsets(ref, end - first)
        return [tell_used(one) if offset else 0 for one, offset in enumerate(offsets, ref)]

    def is_cheap(self, column: str, first: int, end: int) -> bool:
        """Return whether a column takes a fraction of a microsecond for each queue: those with readers take more."""
        del first, end
        return column in self._quick and column != "readers"

    def at_most(self, column: str, first: int, end: int) -> Sequence[int] | None:
        """Return the next offsets of queues: none keeps more messages than ever came."""
        ref = self._find_row(first, end) if column in OFFSETS or column in self._used else -1
        if ref < 0:
            return None
        offsets = self._next_offsets(ref, end - first)
        return offsets if column in OFFSETS else [MANY if offset else 0 for offset in offsets]

    def _find_row(self, first: int, end: int) -> int:
        """Return the number in the store of the first of some queues that follow each other there, else -1."""
        ref = self._refs[first]
        return ref if self._refs[end - 1] - ref == end - 1 - first else -1

    def _next_offsets(self, ref: int, count: int) -> array[int]:
        offsets = array("q", bytes(8 * count))
        self._broker.engine.next_offsets(ref, offsets)
        return offsets

    def take(self, number: int) -> LightPlace:
        """Return a queue."""
        return self._door, self._refs[number]


def told_names(lines: bytes, known: LongNames) -> str:
    """Return what clients call the light queues of some filters, each on a line.

    Args:
        lines: Their keys without the prefix, a line break before each.
        known: What long ones are called.
    """
    if b"|" in lines:
        plain = lines.replace(b"|p", b"+").replace(b"|h", b"#")
        if b"|" in plain:  # there are other escapes
            return "\n".join([told_name(MQTT_PREFIX + key, known).replace("\n", " ") for key in lines.split(b"\n")[1:]])
        lines = plain
    return lines[1:].translate(_SLASHES).decode("utf-8", "backslashreplace")


def told_name(key: bytes, known: LongNames) -> str:
    """Return what clients call a light queue of MQTT or RocketMQ."""
    if not key.startswith(MQTT_PREFIX):
        return text_of(key)
    if b"|" not in key:  # nothing is escaped
        return key[_PREFIX_BYTES:].replace(b"%", b"/").decode("utf-8", "backslashreplace")
    called = known.find(key)
    return text_of(key if called is None else called.name)


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
        return told_name(self._broker.queue_key(self._refs[number]), self._broker.long_names)

    def take(self, number: int) -> LightPlace | None:
        """Return a queue; None where its topic is deleted."""
        ref = self._refs[number]
        return (self._door, ref) if self._known[ref] else None

"""AMQP's queues, and the light queues of the other doors, as parts of long lists."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from operator import is_not

from core.broker import Broker
from core.lmq.queue_name import LIGHT_PREFIX, MQTT, parse_queue_name
from gateway.admin.rosters.roster import Part
from gateway.amqp.queues import VirtualHost
from gateway.amqp.shared_queue import SharedQueue
from gateway.inventory import text_of

LOOKS_A_STEP = 64
MQTT_PREFIX = LIGHT_PREFIX + MQTT + b"%"
_PREFIX_BYTES = len(MQTT_PREFIX)
AmqpPlace = tuple[VirtualHost, SharedQueue]
LightPlace = tuple[str, int]  # door and light queue


class AmqpPart(Part[AmqpPlace]):
    """The queues of a virtual host, which keeps them in the order they came."""

    def __init__(self, vhost: VirtualHost) -> None:
        self._vhost = vhost
        self._queues: list[SharedQueue] = []

    def arrivals(self) -> Iterator[None]:
        """Take those that came after the last one that is still there."""
        last = next((queue for queue in reversed(self._queues) if not queue.is_deleted), None)
        newest_first = reversed(self._vhost)
        fresh = newest_first if last is None else takewhile(partial(is_not, last), newest_first)
        self._queues += list(fresh)[::-1]
        self.size = len(self._queues)
        yield

    def alive(self) -> int:
        """Return how many there are."""
        return len(self._vhost)

    def name(self, number: int) -> str:
        """Return what clients call a queue."""
        return self._queues[number].name

    def take(self, number: int) -> AmqpPlace | None:
        """Return a queue with its virtual host; None where it is deleted."""
        queue = self._queues[number]
        return None if queue.is_deleted else (self._vhost, queue)


class LightPart(Part[LightPlace]):
    """Light queues of one door, which are never gone: a number of the store each.

    Args:
        broker: Where they are.
        door: Whose they are.
        is_of_it: Whether a queue is the door's, by its key.
    """

    def __init__(self, broker: Broker, door: str, is_of_it: Callable[[bytes], bool]) -> None:
        self._broker = broker
        self._door = door
        self._is_of_it = is_of_it
        self._looked = 0
        self._refs = array("i")

    def arrivals(self) -> Iterator[None]:
        """Look at the numbers that were given since the last time."""
        key_of = self._broker.queue_key
        while self._looked < (end := self._broker.queue_count()):
            upto = min(end, self._looked + LOOKS_A_STEP)
            self._refs.extend(ref for ref in range(self._looked, upto) if self._is_of_it(key_of(ref)))
            self._looked = upto
            self.size = len(self._refs)
            yield

    def alive(self) -> int:
        """Return how many there are."""
        return self.size

    def name(self, number: int) -> str:
        """Return what the door's clients call a queue."""
        return told_name(self._broker.queue_key(self._refs[number]))

    def names(self, first: int, end: int) -> list[str]:
        """Return what the door's clients call some queues."""
        return list(map(told_name, map(self._broker.queue_key, self._refs[first:end])))

    def take(self, number: int) -> LightPlace:
        """Return a queue."""
        return self._door, self._refs[number]


def is_of_mqtt(key: bytes) -> bool:
    """Return whether a light queue is that of a filter."""
    return key.startswith(MQTT_PREFIX)


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

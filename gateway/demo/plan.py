"""What the demo plays: devices with their topics, and consumers with what each of them must get.

What a filter covers is worked out here anew, from the protocols' texts, and not by the gateway's own matching: the
demo's counts are a check on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SITES = ("north", "south", "east", "west")
LINES_A_SITE = 5  # with the four sites 20 lines: of 200 devices ten each
KINDS = ("temperature", "vibration", "power", "alarm")
_ALARM_EVERY = 10  # of a device's messages, one is an alarm

Door = Literal["mqtt", "amqp", "sdk"]


@dataclass(frozen=True)
class Device:
    """One simulated device."""

    number: int

    @property
    def client_id(self) -> str:
        """Return the device's MQTT client identifier."""
        return f"device-{self.number:04d}"

    def kind(self, sequence: int) -> str:
        """Return what the device's message `sequence` tells."""
        if sequence % _ALARM_EVERY == self.number % _ALARM_EVERY:
            return "alarm"
        return KINDS[(sequence + self.number) % (len(KINDS) - 1)]

    def topic(self, sequence: int) -> str:
        """Return the topic of the device's message `sequence`."""
        site = SITES[self.number % len(SITES)]
        line = self.number // len(SITES) % LINES_A_SITE
        return f"plant/{site}/line{line}/{self.client_id}/{self.kind(sequence)}"

    def qos(self, sequence: int) -> int:
        """Return the QoS of the device's message `sequence`: measurements may be lost on the way, alarms not."""
        return 1 if self.kind(sequence) in {"alarm", "power"} else 0


@dataclass(frozen=True)
class Consumer:
    """One consumer: its door, its filters in the door's own words, and the queue it reads.

    `qos` is asked for by an MQTT subscriber; one that is away for a while has a persistent session, loses its
    connection half-way, and must still get everything that was published at QoS 1. `requeue_every`
    makes an AMQP consumer give back every so many first deliveries, which must then come again.
    """

    name: str
    door: Door
    filters: tuple[str, ...]
    queue: str = ""  # AMQP queue, or the MQTT filter whose light queue the SDK reads
    qos: int = 0
    is_away_for_a_while: bool = False
    requeue_every: int = 0

    def wants(self, topic: str) -> bool:
        """Return whether a message on `topic` belongs to this consumer, once, by whatever filter."""
        if self.door == "amqp":
            return any(key_matches(key, topic.replace("/", ".")) for key in self.filters)
        return any(filter_matches(wanted, topic) for wanted in self.filters)


CONSUMERS = (
    Consumer("control room", "mqtt", ("plant/+/+/+/temperature",)),
    Consumer("shift lead", "mqtt", ("plant/+/+/+/alarm",), qos=1),
    Consumer(
        "south desk",
        "mqtt",
        ("plant/south/+/+/alarm", "plant/south/+/+/power"),
        qos=1,
        is_away_for_a_while=True,
    ),
    Consumer("historian", "amqp", ("plant.#",), queue="historian"),
    Consumer("alarm desk", "amqp", ("#.alarm",), queue="alarm-desk", requeue_every=50),
    Consumer("energy", "amqp", ("plant.*.*.*.power", "plant.north.#"), queue="energy"),
    Consumer("analyst", "sdk", ("plant/+/+/+/alarm",), queue="plant/+/+/+/alarm"),
)


def filter_matches(topic_filter: str, topic: str) -> bool:
    """Return whether an MQTT filter covers `topic` (MQTT 3.1.1, 4.7)."""
    wanted, given = topic_filter.split("/"), topic.split("/")
    if given[0].startswith("$") and wanted[0] in {"+", "#"}:
        return False
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place == len(given) or level not in {"+", given[place]}:
            return False
    return len(wanted) == len(given)


def key_matches(binding_key: str, routing_key: str) -> bool:
    """Return whether a topic exchange's binding key covers `routing_key` (AMQP 0-9-1, 3.1.3.3)."""
    return _words_match(binding_key.split("."), routing_key.split("."))


def _words_match(wanted: Sequence[str], given: Sequence[str]) -> bool:
    if not wanted:
        return not given
    if wanted[0] == "#":
        return any(_words_match(wanted[1:], given[place:]) for place in range(len(given) + 1))
    return bool(given) and wanted[0] in {"*", given[0]} and _words_match(wanted[1:], given[1:])


def light_queues(consumers: Sequence[Consumer], topic: str) -> set[tuple[str, str]]:
    """Return the light queues that a message on `topic` must be indexed into.

    Each AMQP queue is one, and so is each MQTT filter, however many read it.
    """
    found: set[tuple[str, str]] = set()
    for consumer in consumers:
        if consumer.door == "amqp" and consumer.wants(topic):
            found.add(("amqp", consumer.queue))
        elif consumer.door == "mqtt":
            found |= {("mqtt", own) for own in consumer.filters if filter_matches(own, topic)}
    return found

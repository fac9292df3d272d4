"""What each sent and what each got, and the verdict on it.

Delivery is at least once: a message may come again, if the protocol says that it may be a repeat (MQTT's DUP, AMQP's
redelivered). It may not come again unsaid, not be missing, not come to one that did not ask, and not be altered.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.demo.plan import Consumer

MessageKey = tuple[int, int]
"""Number of the device, and sequence number of its message."""


def make_body(key: MessageKey, kind: str, sent_at_ms: int) -> bytes:
    """Return the body of one message; it names the message, so that each arrival can be counted by itself."""
    device, sequence = key
    value = round(20 + (device * 7 + sequence * 13) % 100 / 10, 1)
    told = {"device": device, "seq": sequence, "kind": kind, "value": value, "at": sent_at_ms}
    return json.dumps(told, separators=(",", ":")).encode()


def read_key(body: bytes) -> MessageKey | None:
    """Return which message a body is of, or None where it is of none that a device sent."""
    try:
        told = json.loads(body)
        return int(told["device"]), int(told["seq"])
    except (ValueError, KeyError, TypeError):
        return None


@dataclass
class Arrivals:
    """What one consumer got."""

    consumer: Consumer
    seen: dict[MessageKey, tuple[str, int]] = field(default_factory=dict)
    given_back: set[MessageKey] = field(default_factory=set)
    came_back: set[MessageKey] = field(default_factory=set)
    repeats: int = 0  # said to be repeats
    unsaid_repeats: list[MessageKey] = field(default_factory=list)
    unknown: list[bytes] = field(default_factory=list)
    error: str = ""  # what ended the consumer before its time

    def add(self, topic: str, body: bytes, *, may_be_repeat: bool) -> MessageKey | None:
        """Count one arrival; return which message it is of."""
        key = read_key(body)
        if key is None:
            self.unknown.append(bytes(body[:80]))
            return None
        if key not in self.seen:
            self.seen[key] = (topic, zlib.crc32(body))
        elif may_be_repeat:
            self.repeats += 1
            self.came_back.add(key)
        else:
            self.unsaid_repeats.append(key)
        return key


@dataclass(frozen=True)
class Verdict:
    """How one consumer fared; all numbers but the first three must be 0."""

    consumer: Consumer
    expected: int
    received: int
    repeats: int
    missing: int
    invented: int
    altered: int
    unsaid_repeats: int
    not_come_back: int
    error: str

    @property
    def is_good(self) -> bool:
        """Return whether nothing was lost and nothing invented."""
        faults = (self.missing, self.invented, self.altered, self.unsaid_repeats, self.not_come_back)
        return not any(faults) and not self.error


class Ledger:
    """All that was sent and received in one run."""

    def __init__(self, consumers: Sequence[Consumer]) -> None:
        self.sent: dict[MessageKey, tuple[str, int]] = {}
        self.arrivals = {consumer.name: Arrivals(consumer) for consumer in consumers}
        self.expected = dict.fromkeys(self.arrivals, 0)
        self._takers_by_topic: dict[str, list[str]] = {}

    def add_sent(self, key: MessageKey, topic: str, body: bytes) -> None:
        """Count one message that a device is about to publish."""
        self.sent[key] = (topic, zlib.crc32(body))
        for name in self._takers(topic):
            self.expected[name] += 1

    def _takers(self, topic: str) -> list[str]:
        if topic not in self._takers_by_topic:
            self._takers_by_topic[topic] = [name for name, own in self.arrivals.items() if own.consumer.wants(topic)]
        return self._takers_by_topic[topic]

    def received_count(self) -> int:
        """Return the arrivals of all consumers, repeats included: it grows as long as something still comes."""
        return sum(len(own.seen) + own.repeats for own in self.arrivals.values())

    def is_complete(self) -> bool:
        """Return whether every consumer has as many messages as it must get, and what was given back again."""
        return all(
            len(own.seen) >= self.expected[name] and own.given_back <= own.came_back
            for name, own in self.arrivals.items()
        )

    def verdicts(self) -> list[Verdict]:
        """Return how each consumer fared."""
        return [self._verdict(own) for own in self.arrivals.values()]

    def _verdict(self, own: Arrivals) -> Verdict:
        wanted = {key for key, (topic, _) in self.sent.items() if own.consumer.name in self._takers(topic)}
        got = own.seen.keys()
        return Verdict(
            consumer=own.consumer,
            expected=len(wanted),
            received=len(got),
            repeats=own.repeats,
            missing=len(wanted - got),
            invented=len(got - wanted) + len(own.unknown),
            altered=sum(1 for key in wanted & got if own.seen[key] != self.sent[key]),
            unsaid_repeats=len(own.unsaid_repeats),
            not_come_back=len(own.given_back - own.came_back),
            error=own.error,
        )

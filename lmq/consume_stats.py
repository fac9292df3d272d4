"""How quickly a consumer gets messages and how its listener does, of the last minute: what operators are shown."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

MINUTE_S = 60.0
HOUR_S = 3600.0
SLOTS = 30  # parts of a span, which end one by one: of a minute 2 s each

Clock = Callable[[], float]


class Tally:
    """Counts and durations of some last time.

    Args:
        span_s: For how long.
        clock: Gives the time.
    """

    def __init__(self, span_s: float, clock: Clock = time.monotonic) -> None:
        self._span_s = span_s
        self._clock = clock
        self._slots: deque[list[float]] = deque()  # when each began, counts, calls, seconds

    def add(self, count: int, took_s: float = 0.0) -> None:
        """Note that one call dealt with so many messages."""
        now_s = self._clock()
        self._forget(now_s)
        if not self._slots or now_s - self._slots[-1][0] >= self._span_s / SLOTS:
            self._slots.append([now_s, 0, 0, 0.0])
        slot = self._slots[-1]
        slot[1] += count
        slot[2] += 1
        slot[3] += took_s

    @property
    def count(self) -> int:
        """How many messages."""
        self._forget(self._clock())
        return int(sum(slot[1] for slot in self._slots))

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.count / self._span_s

    @property
    def took_ms(self) -> float:
        """How long a call took, on average."""
        self._forget(self._clock())
        calls = sum(slot[2] for slot in self._slots)
        return 1000 * sum(slot[3] for slot in self._slots) / calls if calls else 0.0

    def _forget(self, now_s: float) -> None:
        while self._slots and now_s - self._slots[0][0] >= self._span_s:
            self._slots.popleft()


class TopicStats:
    """What is known of one topic."""

    def __init__(self) -> None:
        self.pulled = Tally(MINUTE_S)
        self.done = Tally(MINUTE_S)
        self.failed = Tally(MINUTE_S)
        self.failed_in_hour = Tally(HOUR_S)

    def note_consumed(self, done: int, failed: int, took_s: float) -> None:
        """Note what became of the messages of one call of the listener."""
        if done:
            self.done.add(done, took_s)
        if failed:
            self.failed.add(failed, took_s)
            self.failed_in_hour.add(failed)

    def describe(self) -> dict[str, object]:
        """Return it by the names that RocketMQ's tools read."""
        return {
            "consumeFailedMsgs": self.failed_in_hour.count,
            "consumeFailedTPS": self.failed.rate,
            "consumeOKTPS": self.done.rate,
            "consumeRT": self.done.took_ms,
            "pullRT": self.pulled.took_ms,
            "pullTPS": self.pulled.rate,
        }


class ConsumeStats:
    """What is known of all topics."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicStats] = {}

    def of(self, topic: str) -> TopicStats:
        """Return the figures of a topic, made on first use."""
        return self._topics.setdefault(topic, TopicStats())

"""The `$SYS/broker` tree: what the door counts, as messages for its subscribers, with mosquitto's names.

Its messages are retained in character: a subscriber is sent all values at once, and then those that changed, at an
interval. They are made here for each and are in no log; they go out at QoS 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from core.lmq.retained import filter_matches
from core.reserved import SYS_ROOT
from gateway.mqtt.answers import encode_plain_publish
from gateway.mqtt.packets import RETAIN_AS_PUBLISHED
from gateway.mqtt.session import GONE, Session, Subscription
from gateway.mqtt.topics import EXCLUSIVE_PREFIX, plain_filter
from gateway.runtime.chores import Chores

_FIRST = b"$SYS/"
_MINUTES = (1, 5, 15)
_STARTS = (_FIRST, EXCLUSIVE_PREFIX + _FIRST)

Counts = Mapping[str, int]


class Load:
    """Averages of a counter's growth a minute, over the last 1, 5 and 15 minutes: newer growth weighs more."""

    __slots__ = ("_before", "averages")

    def __init__(self, count: int) -> None:
        self.averages = [0.0, 0.0, 0.0]
        self._before = count

    def note(self, count: int, seconds: float) -> None:
        """Take in how far the counter is now, `seconds` after the last call."""
        a_minute = (count - self._before) * 60 / seconds
        self._before = count
        for i, minutes in enumerate(_MINUTES):
            weight = math.exp(-seconds / (60 * minutes))
            self.averages[i] = a_minute + weight * (self.averages[i] - a_minute)


class SysTree:
    """The values, and the sessions that are sent them.

    Args:
        chores: Sends to many in steps.
        version: Of the product.
        count: Gives the counts of now by topic, below `$SYS/broker/`.
        loads: Gives the counts of now of which averages are told, by the name that follows `load/`.
    """

    def __init__(self, chores: Chores, version: str, count: Callable[[], Counts], loads: Callable[[], Counts]) -> None:
        self.interval_s = 0
        self._chores = chores
        self._version = f"LMQ Gateway {version}".encode()
        self._count = count
        self._load_counts = loads
        self._loads: dict[str, Load] = {}
        self._values: dict[bytes, bytes] = {}
        self._watchers: dict[Subscription, None] = {}
        self._started_ms = 0
        self._published_ms = 0

    def start(self, now_ms: int, interval_s: int) -> None:
        """Begin to count time; an interval of 0 means that there is no tree."""
        self._started_ms = self._published_ms = now_ms
        self._loads = {name: Load(count) for name, count in self._load_counts().items()}
        self.set_interval(interval_s)

    def set_interval(self, interval_s: int) -> None:
        """Publish at another interval from now on, 0 for not at all."""
        self.interval_s = interval_s
        self._values = (self._values or self._current(self._published_ms)) if interval_s else {}

    def watch(self, subscription: Subscription, *, wants_retained: bool) -> None:
        """Send the values to a subscription whose filter is for them, from now on; harmless for any other."""
        if not subscription.topic_filter.startswith(_STARTS):
            return
        self._watchers[subscription] = None
        if wants_retained:
            self._send(subscription, self._values, is_first=True)

    def watch_all(self, session: Session) -> None:
        """Do so for all subscriptions of a session that came back."""
        for topic_filter, subscription in session.subscriptions.items():
            if topic_filter.startswith(_STARTS):
                self.watch(subscription, wants_retained=False)

    def tick(self, now_ms: int) -> None:
        """Publish what changed, if the interval is over."""
        if not self.interval_s or now_ms - self._published_ms < 1_000 * self.interval_s:
            return
        seconds = (now_ms - self._published_ms) / 1_000
        self._published_ms = now_ms
        for name, count in self._load_counts().items():
            self._loads[name].note(count, seconds)
        values = self._current(now_ms)
        changed = {topic: value for topic, value in values.items() if self._values.get(topic) != value}
        self._values = values
        if self._watchers:
            self._chores.start(self._send_all(changed))

    def _current(self, now_ms: int) -> dict[bytes, bytes]:
        values = {b"version": self._version, b"uptime": b"%d seconds" % ((now_ms - self._started_ms) // 1_000)}
        values.update((name.encode(), b"%d" % count) for name, count in self._count().items())
        for name, load in self._loads.items():
            for minutes, average in zip(_MINUTES, load.averages, strict=True):
                values[b"load/%b/%dmin" % (name.encode(), minutes)] = b"%.2f" % average
        return {SYS_ROOT + name: value for name, value in values.items()}

    def _send_all(self, changed: dict[bytes, bytes]) -> Iterator[None]:
        for subscription in list(self._watchers):
            if subscription.state == GONE or subscription.session.outlet is None:
                self._watchers.pop(subscription, None)
            else:
                self._send(subscription, changed, is_first=False)
            yield

    @staticmethod
    def _send(subscription: Subscription, values: dict[bytes, bytes], *, is_first: bool) -> None:
        """Send the values that match; a client that does not read gets the next values when it reads again."""
        session = subscription.session
        outlet = session.outlet
        if outlet is None or not outlet.is_writable:
            return
        plain = plain_filter(subscription.topic_filter)
        retain = is_first or bool(subscription.options & RETAIN_AS_PUBLISHED)
        packets = [
            encode_plain_publish(topic, value, session.level, subscription.identifier, retain=retain)
            for topic, value in values.items()
            if filter_matches(plain, topic)
        ]
        limit = session.packet_bytes_max
        data = b"".join([packet for packet in packets if not limit or len(packet) <= limit])
        if data:
            outlet.write(data)

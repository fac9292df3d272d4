"""Replays: `$replay/<start>/<filter>` gives the stored messages of a filter from a place on, and then the live ones.

What is stored is read from the parent topic's queue, through the filter: the light queue of a filter has nothing from
before its first subscription. Once a replay has come to the end, it goes on in the light queue, which is bound
since the SUBSCRIBE: both ends are the same moment, so nothing is left out and nothing comes twice.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import NamedTuple

from core.broker import Broker
from core.lmq.retained import filter_matches
from core.message import StoredBatch
from core.properties import EXCHANGE
from gateway.mqtt.session import OFFLINE, Session, Subscription
from gateway.mqtt.topics import REPLAY_PREFIX, split_replay

LOGGER = logging.getLogger(__name__)

_OFFSET = re.compile(r"\d{1,18}")
_DURATION = re.compile(r"-(?=\d)(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,12})ms)?")
_UNIT_MS = (86_400_000, 3_600_000, 60_000, 1_000, 1)  # in the order of _DURATION
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
_HAS_EXCHANGE = b"\x02" + EXCHANGE + b"\x01"  # behind the topic of what came by another exchange than amq.topic


class Start(NamedTuple):
    """Where a replay begins: at an offset, or at a moment."""

    offset: int | None
    at_ms: int


def is_replay(topic_filter: bytes) -> bool:
    """Return whether a filter asks for what is stored, too."""
    return topic_filter.startswith(REPLAY_PREFIX)


def parse_start(text: bytes, now_ms: int) -> Start | None:
    """Return where a replay begins; None where that is no offset, no duration and no moment."""
    try:
        start = text.decode("ascii")
    except UnicodeDecodeError:
        return None
    if _OFFSET.fullmatch(start):
        return Start(int(start), 0)
    found = _DURATION.fullmatch(start)
    if found is not None:
        parts = zip(found.groups(), _UNIT_MS, strict=True)
        return Start(None, max(now_ms - sum(int(count) * unit for count, unit in parts if count is not None), 0))
    if _MOMENT.fullmatch(start) is None:
        return None
    try:
        return Start(None, max(int(datetime.fromisoformat(start.upper()).timestamp() * 1000), 0))
    except ValueError:  # no such day, no such hour
        return None


def _nothing(subscription: Subscription, begins: bool) -> None:  # noqa: FBT001  # told by position
    del subscription, begins


class History:
    """What the log holds of the one topic space: the queue of the parent topic.

    Args:
        broker: Where it is read.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sought: dict[Subscription, bool] = {}  # whose start is looked for, and whether to begin then
        self.on_found: Callable[[Subscription, bool], None] = _nothing  # and whether to begin now

    def intern_queue(self) -> int:
        """Return the queue of the parent topic, made on first use."""
        return self._broker.intern_queue(self._broker.parent_topic + b"/0")

    def make(self, session: Session, topic_filter: bytes, qos: int, now_ms: int) -> Subscription:
        """Return a new subscription to a replay, whose start can be understood; it may still be sought."""
        start = parse_start(split_replay(topic_filter)[0], now_ms)
        assert start is not None  # else it was refused
        queue_ref = self.intern_queue()
        low, high = self._broker.min_offset(queue_ref), self._broker.max_offset(queue_ref)
        made = Subscription(session, topic_filter, qos, queue_ref, high)
        made.is_replay = True
        if start.offset is not None:
            made.position = min(max(start.offset, low), high)
        else:
            self._sought[made] = False
            self._broker.find_offset(queue_ref, start.at_ms, partial(self._found, made))
        return made

    def is_sought(self, subscription: Subscription) -> bool:
        """Return whether a replay's start is not found yet; if so it begins by itself when it is."""
        if subscription not in self._sought:
            return False
        self._sought[subscription] = True
        return True

    def _found(self, subscription: Subscription, offset: int) -> None:
        begins = self._sought.pop(subscription)
        if offset < 0:
            LOGGER.warning(
                "replay begins with live messages: its start cannot be told name=%r", subscription.topic_filter
            )
        elif subscription.state == OFFLINE:
            subscription.position = min(offset, subscription.position)
        if subscription.state == OFFLINE:
            self.on_found(subscription, begins)


def is_of(batch: StoredBatch, i: int, topic_filter: bytes) -> bool:
    """Return whether message `i` of the parent topic's queue was published to a topic that matches."""
    end = batch.topic_end[i]
    if batch.topic_start[i] < batch.properties_start[i]:
        return False  # it names none
    if batch.buf[end : end + len(_HAS_EXCHANGE)] == _HAS_EXCHANGE:
        return False
    return filter_matches(topic_filter, bytes(batch.buf[batch.topic_start[i] : end]))

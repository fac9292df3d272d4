"""What a session is sent before and beside its subscriptions: unacknowledged messages again, retained ones."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator

from core.broker import Broker
from core.lmq.retained import RetainedMessages, filter_matches
from core.message import StoredBatch
from gateway.mqtt.catch_up import CatchUp
from gateway.mqtt.session import GONE, NO_SLOT, RETAINED_SOURCE, Session, Subscription
from gateway.mqtt.topics import plain_filter

GATHERED_MAX = 8  # matches that a walk looks at where it would give a message, which costs as much


class RetainedWalk:
    """The retained messages of one filter, on their way to a session, as one SUBSCRIBE asked for them.

    Args:
        matches: Topic and record of each.
        qos: The QoS granted.
        subscription: Whose they are.
    """

    __slots__ = ("_matches", "catch_up", "is_over", "qos", "subscription")

    def __init__(self, matches: Iterator[tuple[bytes, bytes]], qos: int, subscription: Subscription) -> None:
        self.qos = qos
        self.subscription = subscription
        self.catch_up: CatchUp | None = None
        self.is_over = False
        self._matches = matches

    def take(self) -> bytes | None:
        """Return the next record; None where none is at hand, now or, `is_over`, at all."""
        found = next(self._matches, None) if self.subscription.state != GONE else None
        self.is_over = found is None
        return None if found is None else found[1]


class CatchUpWalk:
    """The same for a durable subscription at QoS 1: from the cursor of its catch-up on, in the order of the log.

    Args:
        offsets: The physical offset of each retained message that matches, in any order.
        find: Gives the record at a physical offset, None where it is no retained message any more.
        subscription: Whose they are.
        catch_up: What the subscription is owed; a restart of it ends the walk.
    """

    __slots__ = ("_find", "_found", "_offsets", "_round", "catch_up", "is_over", "qos", "subscription")

    def __init__(
        self,
        offsets: Iterator[int],
        find: Callable[[int], bytes | None],
        subscription: Subscription,
        catch_up: CatchUp,
    ) -> None:
        self.qos = subscription.qos
        self.subscription = subscription
        self.catch_up = catch_up
        self.is_over = False
        self._offsets = offsets
        self._find = find
        self._round = catch_up.round
        self._found = array("q")

    def take(self) -> bytes | None:
        """Return the next record; None where none is at hand, now or, `is_over`, at all."""
        if self.catch_up.is_ended or self.catch_up.round != self._round:
            self.is_over = True
        elif self.catch_up.ahead is None:
            self._gather()
        elif self.catch_up.ahead:
            return self._find(self.catch_up.ahead.pop())
        else:
            self.catch_up.cursor = self.catch_up.until
            self.is_over = True
        return None

    def _gather(self) -> None:
        for _ in range(GATHERED_MAX):
            offset = next(self._offsets, -1)
            if offset < 0:
                self.catch_up.ahead = array("q", sorted(self._found, reverse=True))
                break
            if self.catch_up.cursor <= offset < self.catch_up.until:
                self._found.append(offset)


def make_walk(retained: RetainedMessages, subscription: Subscription, qos: int) -> RetainedWalk | CatchUpWalk | None:
    """Return the way of the retained messages that a subscription is owed, None where it is owed none."""
    catch_up = subscription.session.find_catch_up(subscription.topic_filter)
    topic_filter = plain_filter(subscription.topic_filter)
    if catch_up is not None:
        return CatchUpWalk(retained.match_offsets(topic_filter), retained.find, subscription, catch_up)
    if subscription.floor_slot == NO_SLOT and len(retained):
        return RetainedWalk(retained.match(topic_filter), qos, subscription)
    return None


def read_owed(broker: Broker, physical_offset: int, topic_filter: bytes, one: StoredBatch) -> bool:
    """Read a retained message again; False where it is gone, or what is there is none that the filter asked for."""
    if not broker.read_retained(physical_offset, one):
        return False
    topic = bytes(one.buf[one.topic_start[0] : one.topic_end[0]])
    return filter_matches(plain_filter(topic_filter), topic)


def enter_retained(session: Session, window_max: int, catch_up: CatchUp | None, offset: int, state: int) -> None:
    """Enter a retained message that is sent into the window of a session."""
    number = session.open_window(window_max).push_one(RETAINED_SOURCE, offset, state)
    if catch_up is not None:
        session.retained_inflight = session.retained_inflight or {}
        session.retained_inflight[number] = catch_up


class Backlog:
    """One session's."""

    __slots__ = ("is_queued", "resend_from", "resend_until", "retained", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.resend_from = 0
        self.resend_until = 0
        self.retained: deque[RetainedWalk | CatchUpWalk] = deque()
        self.is_queued = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return not self.retained and self.resend_from >= self.resend_until

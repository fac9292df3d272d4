"""What a session is sent before and beside its subscriptions: unacknowledged messages again, retained ones."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from core.broker import Broker
from core.lmq.retained import RetainedMessages, filter_matches
from core.lmq.waiters import Reader
from core.message import AWAY, StoredBatch
from gateway.mqtt.catch_up import RUN_MAX, Ahead, CatchUp
from gateway.mqtt.inflight import InflightWindow
from gateway.mqtt.publish_encoder import READ_BYTES_MAX
from gateway.mqtt.session import GONE, NO_SLOT, RETAINED_SOURCE, Session, Subscription
from gateway.mqtt.topics import plain_filter

NOTHING_ASKED = -1
NOT_PARKED = -1
_END = object()
GATHERED_MAX = 4  # matches that a walk looks at where it would give a message, which costs as much


class RetainedWalk:
    """The retained messages of one filter, on their way to a session, as one SUBSCRIBE asked for them.

    Args:
        matches: Topic and record of each.
        qos: The QoS granted.
        subscription: Whose they are.
        until: The version before which they were stored; the walk may give others, too.
    """

    __slots__ = ("_matches", "catch_up", "is_over", "qos", "subscription", "until")

    def __init__(
        self, matches: Iterator[tuple[bytes, bytes] | None], qos: int, subscription: Subscription, until: int
    ) -> None:
        self.qos = qos
        self.until = until
        self.subscription = subscription
        self.catch_up: CatchUp | None = None
        self.is_over = False
        self._matches = matches

    def take(self) -> bytes | None:
        """Return the next record; None where none is at hand, now or, `is_over`, at all."""
        found = next(self._matches, _END) if self.subscription.state != GONE else _END
        self.is_over = found is _END
        return found[1] if isinstance(found, tuple) else None


class CatchUpWalk:
    """The same for a durable subscription at QoS 1: from the cursor of its catch-up on, in the order of versions.

    Args:
        versions: The version of each retained message that matches, in any order.
        find: Gives the record of a version, None where it is no retained message any more.
        subscription: Whose they are.
        catch_up: What the subscription is owed; a restart of it ends the walk.
    """

    __slots__ = ("_find", "_found", "_round", "_runs", "_versions", "catch_up", "is_over", "qos", "subscription")

    def __init__(
        self,
        versions: Iterator[int | None],
        find: Callable[[int], bytes | None],
        subscription: Subscription,
        catch_up: CatchUp,
    ) -> None:
        self.qos = subscription.qos
        self.subscription = subscription
        self.catch_up = catch_up
        self.is_over = False
        self._versions = versions
        self._find = find
        self._round = catch_up.round
        self._found = array("q")
        self._runs: list[array[int]] = []

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
            version = next(self._versions, -1)
            if version is None:
                break
            if version < 0:
                self._end_run()
                self.catch_up.ahead = Ahead(self._runs)
                break
            if self.catch_up.cursor <= version < self.catch_up.until:
                self._found.append(version)
                if len(self._found) == RUN_MAX:
                    self._end_run()

    def _end_run(self) -> None:
        self._runs.append(array("q", sorted(self._found)))
        self._found = array("q")


def make_walk(
    retained: RetainedMessages, subscription: Subscription, qos: int, until: int
) -> RetainedWalk | CatchUpWalk | None:
    """Return the way of the retained messages that a subscription is owed, None where it is owed none."""
    catch_up = subscription.session.find_catch_up(subscription.topic_filter)
    topic_filter = plain_filter(subscription.topic_filter)
    if catch_up is not None:
        return CatchUpWalk(retained.walk_versions(topic_filter), retained.find, subscription, catch_up)
    if subscription.floor_slot == NO_SLOT and len(retained):
        return RetainedWalk(retained.walk(topic_filter), qos, subscription, until)
    return None


def enter_retained(session: Session, window_max: int, catch_up: CatchUp | None, version: int, state: int) -> int:
    """Enter a retained message that is sent into the window of a session; return its number."""
    number = session.open_window(window_max).push_one(RETAINED_SOURCE, version, state)
    if catch_up is not None:
        session.retained_inflight = session.retained_inflight or {}
        session.retained_inflight[number] = catch_up
    return number


class Backlog(Reader):
    """One session's. What is on its way to it, from wherever messages are kept, runs it again when it is here.

    Args:
        broker: Where it waits for queues.
        session: Whose it is.
        run_soon: Runs it in turn.
    """

    __slots__ = (
        "_broker",
        "_parked_on",
        "_run_soon",
        "asked",
        "found",
        "is_queued",
        "resend_from",
        "resend_until",
        "retained",
        "session",
    )

    def __init__(self, broker: Broker, session: Session, run_soon: Callable[[Backlog], None]) -> None:
        self.session = session
        self._broker = broker
        self._run_soon = run_soon
        self._parked_on = NOT_PARKED
        self.resend_from = 0
        self.resend_until = 0
        self.retained: deque[RetainedWalk | CatchUpWalk] = deque()
        self.is_queued = False
        self.asked = NOTHING_ASKED  # the version of a retained message that is to be sent again
        self.found: bytes | bool | None = False  # its record, None where it is gone; False while nobody knows

    @property
    def is_resending(self) -> bool:
        """Whether something that is not acknowledged is to be sent again."""
        return self.resend_from < self.resend_until

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return not self.retained and not self.is_resending

    def stop_waiting(self) -> None:
        """Wait for nothing any more."""
        if self._parked_on != NOT_PARKED:
            self._broker.unpark(self._parked_on, self)
            self._parked_on = NOT_PARKED

    def on_ready(self, now_ms: int) -> bool:  # noqa: ARG002  # the interface says so
        """Messages are here that were waited for."""
        self.stop_waiting()
        self._run_soon(self)
        return False

    def read_again(
        self, window: InflightWindow, number: int, batch: StoredBatch, one: StoredBatch, count_max: int
    ) -> int:
        """Read messages of the session's window again, from `number` on, that stand together in a queue.

        Returns:
            How many are in `batch`, or in `one` where it is a retained message; 0 where it is gone; AWAY where it is
            on its way.
        """
        session = self.session
        subscription = session.sources[window.source_of(number)]
        offset = window.offset_of(number)
        if subscription is None:
            return self._read_owed(number, offset, one)
        wanted = min(count_max, self.resend_until - number, window.room_at(number))
        wanted = window.run_length(number, wanted)
        if self._broker.read(subscription.queue_ref, offset, batch, wanted, READ_BYTES_MAX) == AWAY:
            self._parked_on = subscription.queue_ref
            self._broker.park(subscription.queue_ref, self)
            return AWAY
        count = 0
        while count < batch.count and batch.queue_offset[count] == offset + count:
            count += 1
        batch.count = count
        return count

    def _read_owed(self, number: int, version: int, one: StoredBatch) -> int:
        """Read a retained message again; 0 too where what is there is none that the filter asked for."""
        if self.asked != version:
            self.asked, self.found = version, False
            self._broker.find_retained(version, partial(self._note_found, version))
        record = self.found
        if isinstance(record, bool):
            return AWAY
        self.asked = NOTHING_ASKED
        catch_up = (self.session.retained_inflight or {}).get(number)
        if catch_up is None or record is None or not self._broker.read_record(record, one):
            return 0
        topic = bytes(one.buf[one.topic_start[0] : one.topic_end[0]])
        return int(filter_matches(plain_filter(catch_up.topic_filter), topic))

    def _note_found(self, version: int, record: bytes | None) -> None:
        if version == self.asked:
            self.found = record
            self._run_soon(self)

"""What a session is sent beside its subscriptions: unacknowledged messages again, and retained ones, in turns."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import takewhile

from core.broker import Broker
from core.lmq.queue_name import mqtt_queue_name
from core.message import AWAY, FLAG_QOS_MASK, StoredBatch
from gateway.mqtt.backlog import Backlog, CatchUpWalk, RetainedWalk, enter_retained, make_walk
from gateway.mqtt.catch_up import CatchUp, CatchUps
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.feeds import Desk, Limits, PlacesLike
from gateway.mqtt.inflight import EXACT_RECEIVED, EXACT_SENT, ID_COUNT, ONCE_SENT, InflightWindow
from gateway.mqtt.packets import LEVEL_5, RETAIN_AS_PUBLISHED
from gateway.mqtt.publish_encoder import BATCH_COUNT_MAX, OLD_FORM, Form
from gateway.mqtt.session import Session, Subscription
from gateway.mqtt.shared_group import OWNER_PREFIX
from gateway.mqtt.sieve import TOO_LARGE, fits, make_form
from gateway.mqtt.topics import is_shared, split_share

TURN_BYTES_MAX = 8 * 1024 * 1024  # what those behind are sent in one turn: 32 times a read of a busy publisher
# For retained messages in one turn: by time, as the search for one may take as long as sending it.
RETAINED_TURN_NS = 1_000_000
RETAINED_RUN_NS = RETAINED_TURN_NS // 4  # for those of one session, before others have their turn
_ALL = 2**62  # above any queue offset
_EXACT = 2


class Redelivery(Desk):
    """The backlogs of all sessions of a door."""

    def __init__(
        self, broker: Broker, limits: Limits, places: PlacesLike, catch_ups: CatchUps, exact: ExactJournal
    ) -> None:
        super().__init__(broker, limits, places, exact, broker.metrics.door("mqtt"))
        self.catch_ups = catch_ups
        self.now_ms = 0  # when the turn under way is
        self.now_ns: Callable[[], int] = time.monotonic_ns
        self._one = StoredBatch(1)
        self._waiting: deque[Subscription | Backlog] = deque()
        self._backlogs: dict[Session, Backlog] = {}
        self.on_left: Callable[[Session, int], None] = lambda _, __: None  # of what ended, by a slot, something is done

    def let_go(self, session: Session, window: InflightWindow, number: int) -> None:
        """Take a message of a session's window as acknowledged, which may let others leave it."""
        raise NotImplementedError

    def _start_all(self, session: Session) -> None:
        """Begin with all subscriptions: nothing is left to be sent again."""
        raise NotImplementedError

    def send_retained(self, subscription: Subscription, qos: int, until: int = _ALL) -> None:
        """Send the retained messages that match, before a version, as the window and the outlet allow."""
        walk = make_walk(self.broker.retained, subscription, qos, until)
        if walk is None:
            return  # there is none, or was none at the SUBSCRIBE: what came since comes by the queue
        backlog = self._backlog_of(subscription.session)
        backlog.retained.append(walk)
        self._want_backlog(backlog)

    def _backlog_of(self, session: Session) -> Backlog:
        backlog = self._backlogs.get(session)
        if backlog is None:
            backlog = self._backlogs[session] = Backlog(self.broker, session, self._want_backlog)
        return backlog

    def _want_backlog(self, backlog: Backlog) -> None:
        if not backlog.is_queued:
            backlog.is_queued = True
            self._waiting.append(backlog)
            self.broker.request_run(self)

    def _run_backlog(self, backlog: Backlog) -> int:
        """Send some of a backlog; return how many bytes."""
        session = backlog.session
        if self._backlogs.get(session) is not backlog or session.outlet is None or not session.outlet.is_writable:
            return 0
        if session.pace is not None and not session.pace.room(self.now_ms):
            return 0  # the end of the pause wakes it
        if backlog.is_resending:
            assert session.window is not None
            sent = self._resend(backlog, session.window)
            if backlog.resend_from >= backlog.resend_until:
                self._start_all(session)
        else:
            sent = self._send_some_retained(backlog)
        if backlog.is_done:
            del self._backlogs[session]
        elif sent if backlog.is_resending else self._may_send_retained(backlog):
            self._want_backlog(backlog)
        return sent

    def _may_send_retained(self, backlog: Backlog) -> bool:
        """Return whether outlet and window take the next retained message."""
        session = backlog.session
        if not backlog.retained or session.outlet is None or not session.outlet.is_writable:
            return False
        if session.pace is not None and not session.pace.room(self.now_ms):
            return False
        return not backlog.retained[0].qos or session.room(self.inflight_max) > 0

    def _resend(self, backlog: Backlog, window: InflightWindow) -> int:
        """Send a run of unacknowledged messages again, with their own packet identifiers."""
        session = backlog.session
        while True:
            number = window.next_unacked(backlog.resend_from)
            if number >= backlog.resend_until:
                backlog.resend_from = backlog.resend_until
                return 0
            if window.room_at(number) <= 0:
                return 0  # an acknowledgement wakes it
            if window.state_of(number) == EXACT_RECEIVED:
                backlog.resend_from = number + 1
                return self._send_release(session, number)
            count_max = BATCH_COUNT_MAX if session.pace is None else session.pace.room(self.now_ms)
            count = backlog.read_again(window, number, self.batch, self._one, min(count_max, BATCH_COUNT_MAX))
            if count == AWAY:
                return 0  # it is woken
            fitting = self._count_fitting(session, window.source_of(number), number, count)
            if fitting:
                break
            self._note_lost(session, window, number, TOO_LARGE if count else "expired")
            if window.state_of(number) == EXACT_SENT:
                self.only_release(session, window, number)
                backlog.resend_from = number + 1
                return self._send_release(session, number)
            self.let_go(session, window, number)
        count = fitting
        backlog.resend_from = number + count
        subscription = session.sources[window.source_of(number)]
        batch = self.batch if subscription is not None else self._one
        retain = int(batch is self._one)
        qos = _EXACT if window.state_of(number) == EXACT_SENT else 1
        identifier = self._identifier_of(session, number)
        form = Form(session.level, self.now_ms, identifier) if subscription is None else self._form_of(subscription)
        data = self.encoder.encode(batch, qos, number % ID_COUNT + 1, _ALL, retain, form)
        self._note_again(session)
        return self._write(session, data, batch)

    def only_release(self, session: Session, window: InflightWindow, number: int) -> None:
        """Have a message at QoS 2 that is not sent again be released: its client may hold the packet identifier.

        A client that never got it answers the PUBREL all the same.
        """
        self.exact.note_received(session, (number,))
        window.release(number)

    def _note_lost(self, session: Session, window: InflightWindow, number: int, reason: str) -> None:
        """Note that a message in flight is not sent again, before it is let go of."""
        self.metrics.drop(reason)
        self._note_end(session, window, number, reason, self.now_ms)

    def _note_end(self, session: Session, window: InflightWindow, number: int, reason: str, now_ms: int) -> None:
        """Note how a message in flight ends; one of a shared filter at QoS 2, which is done for the group.

        Args:
            session: Whose it is.
            window: The session's.
            number: The message in the window.
            reason: Why it ends.
            now_ms: The time, 0 where it is not known.
        """
        subscription = session.sources[window.source_of(number)]
        if subscription is None:
            return
        offset, topic_filter = window.offset_of(number), subscription.topic_filter
        if not is_shared(topic_filter):
            reader = (self.broker.queue_key(subscription.queue_ref), session.client_id)
            self.broker.lasting_endings.note_run(reader, offset, offset + 1, reason, now_ms)
        elif window.state_of(number) != ONCE_SENT:
            self._note_group_ends(topic_filter, (offset,), reason, now_ms)

    def _note_ends(self, session: Session, window: InflightWindow, numbers: Sequence[int], reason: str) -> None:
        """Note how messages in flight end, as `_note_end` does, those of one subscription together."""
        by_source: dict[int, list[int]] = {}
        for number in numbers:
            by_source.setdefault(window.source_of(number), []).append(number)
        for source, found in by_source.items():
            subscription = session.sources[source]
            if subscription is None:
                continue
            topic_filter = subscription.topic_filter
            if is_shared(topic_filter):
                exact = [window.offset_of(one) for one in found if window.state_of(one) != ONCE_SENT]
                self._note_group_ends(topic_filter, sorted(exact), reason, 0)
            else:
                offsets = sorted([window.offset_of(one) for one in found])
                reader = (self.broker.queue_key(subscription.queue_ref), session.client_id)
                self.broker.lasting_endings.note(reader, offsets, len(offsets), reason, 0)

    def _note_group_ends(self, topic_filter: bytes, offsets: Sequence[int], reason: str, now_ms: int) -> None:
        """Note how messages of a shared filter end, ascending, which are done for the group."""
        group, inner = split_share(topic_filter)
        self.broker.pop.tell_ends(mqtt_queue_name(inner), OWNER_PREFIX + group, offsets, reason, now_ms)

    def _count_fitting(self, session: Session, source: int, number: int, count: int) -> int:
        """Return how many of `count` messages that were read again the client takes, up to the first too large one."""
        if not session.packet_bytes_max or not count:
            return count
        subscription = session.sources[source]
        batch = self._one if subscription is None else self.batch
        identifier = self._identifier_of(session, number) if subscription is None else subscription.identifier
        for i in range(count):
            if not fits(batch, i, session, 1, identifier):
                batch.count = i
                return i
        return count

    @staticmethod
    def _identifier_of(session: Session, number: int) -> int:
        """Return the identifier of the subscription that a retained message in flight is for, 0 where it has none."""
        catch_up = (session.retained_inflight or {}).get(number)
        subscription = None if catch_up is None else session.subscriptions.get(catch_up.topic_filter)
        return 0 if subscription is None else subscription.identifier

    def _send_release(self, session: Session, number: int) -> int:
        """Send the PUBREL of a message at QoS 2 that the client has; return how many bytes."""
        assert session.outlet is not None
        session.outlet.write(b"\x62\x02" + (number % ID_COUNT + 1).to_bytes(2, "big"))
        return 4

    def _send_some_retained(self, backlog: Backlog) -> int:
        """Send retained messages for a while; return the part of a turn's bytes that this was worth."""
        took_ns, began_ns = 0, self.now_ns()
        while took_ns < RETAINED_RUN_NS and self._may_send_retained(backlog):
            walk = backlog.retained[0]
            record = walk.take()
            if record is not None and self.broker.read_record(record, self._one):
                self._send_one_retained(walk, record)
            if walk.is_over:
                backlog.retained.popleft()
                if walk.catch_up is not None:
                    self._maybe_end(backlog.session, walk.catch_up)
            took_ns = self.now_ns() - began_ns
        return took_ns * TURN_BYTES_MAX // RETAINED_TURN_NS

    def _send_one_retained(self, walk: RetainedWalk | CatchUpWalk, record: bytes) -> None:
        session = walk.subscription.session
        version = self.broker.retained.version_of(record)
        self.drop_expired(self._one, self.now_ms)
        identifier = walk.subscription.identifier
        if walk.catch_up is None and version >= walk.until:
            return  # it came after the SUBSCRIBE
        if not self._one.count or (session.packet_bytes_max and not fits(self._one, 0, session, walk.qos, identifier)):
            return
        first_id = session.open_window(self.inflight_max).next_id() if walk.qos else 1
        form = Form(session.level, self.now_ms, identifier)  # no aliases: it may not be sent yet
        data = self.encoder.encode(self._one, walk.qos, first_id, -1, 1, form)
        is_numbered = self.encoder.id_count > 0
        catch_up = walk.catch_up
        if catch_up is not None and not self.catch_ups.note_sent(catch_up, version, is_in_flight=is_numbered):
            walk.is_over = True  # it goes on when the session comes back
            return
        if is_numbered:
            is_exact = walk.qos == _EXACT and self._one.flag[0] & FLAG_QOS_MASK == _EXACT
            number = enter_retained(
                session, self.inflight_max, catch_up, version, EXACT_SENT if is_exact else ONCE_SENT
            )
            if is_exact and catch_up is not None:
                self.exact.note_sent(session, catch_up.slot, [(number, version)])
        self._write(session, data, self._one)

    def _forget_retained(self, session: Session, window: InflightWindow) -> None:
        kept = session.retained_inflight or {}
        done = Counter([kept.pop(number) for number in list(takewhile(window.tail.__gt__, kept))])
        for catch_up, count in done.items():
            self.catch_ups.note_done(catch_up, count)
            self._maybe_end(session, catch_up)

    def _maybe_end(self, session: Session, catch_up: CatchUp) -> None:
        """Let go of a catch-up of which everything was sent and acknowledged."""
        if catch_up.is_over and not catch_up.is_ended:
            self.catch_ups.end(catch_up)
            self.exact.forget_slot(session, catch_up.slot)
            session.drop_catch_up(catch_up)
            self.on_left(session, catch_up.slot)

    def _note_again(self, session: Session) -> None:
        """Count what the encoder marked as sent again."""
        self.metrics.redelivered += self.encoder.dup_count
        session.redelivered += self.encoder.dup_count

    def _form_of(self, subscription: Subscription) -> Form:
        """Return how a subscription is written to now."""
        session = subscription.session
        level = session.level
        keeps_retain = subscription.options & RETAIN_AS_PUBLISHED > 0
        if keeps_retain or subscription.identifier or session.aliases is not None:
            return make_form(subscription, self.now_ms)
        if level != LEVEL_5:
            return OLD_FORM
        self.form_5.now_ms = self.now_ms
        return self.form_5

    def _write(self, session: Session, data: bytes, batch: StoredBatch) -> int:
        assert session.outlet is not None
        session.outlet.write(data)
        if session.pace is not None:
            session.pace.note(batch.count, self.encoder.body_bytes, self.now_ms)
        self.metrics.messages_out += batch.count
        self.metrics.bytes_out += self.encoder.body_bytes
        batch.clear()
        return len(data)

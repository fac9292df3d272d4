"""Deliveries: feeds for the subscriptions that keep up, turns for those that do not.

Work of one turn is bounded: a session with more to read is run again in the next one, behind all others.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from itertools import takewhile

from core.broker import Broker
from core.message import AWAY, FLAG_QOS_MASK, StoredBatch
from gateway.auth.permissions import Permissions
from gateway.mqtt.backlog import Backlog, CatchUpWalk, RetainedWalk, enter_retained, make_walk
from gateway.mqtt.catch_up import CatchUp, CatchUps
from gateway.mqtt.columns import RunColumns
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.feeds import Desk, FilterFeed, Limits, PlacesLike, enter, keep_places, skip_oldest
from gateway.mqtt.inflight import EXACT_RECEIVED, EXACT_SENT, ID_COUNT, ONCE_SENT, InflightWindow
from gateway.mqtt.packets import LEVEL_5, RETAIN_AS_PUBLISHED
from gateway.mqtt.publish_encoder import BATCH_COUNT_MAX, OLD_FORM, READ_BYTES_MAX, Form
from gateway.mqtt.session import BEHIND, GONE, NO_SLOT, OFFLINE, SETTLING, SHARED, Session, Subscription
from gateway.mqtt.sieve import fits, has_own_form, keep_wanted, make_form, unacked_denied

TURN_BYTES_MAX = 8 * 1024 * 1024  # what those behind are sent in one turn: 32 times a read of a busy publisher
TURN_RUNS_MAX = 256
STARTED_AT_ONCE = 64  # subscriptions of a session that comes back
RETAINED_RUN_MAX = 64  # retained messages that one session is sent before others have their turn
LOOKS_MAX = 256  # for retained messages in one turn, some 3 ms
OWED_LOOKS_MAX = 128  # of which each that is found is written down
SCAN_COST = TURN_BYTES_MAX // 2  # of a batch of a replay: most of it may be for others, and is looked at all the same
_ALL = 2**62  # above any queue offset
_EXACT = 2


class Delivery(Desk):
    """All deliveries of a door. It is itself the broker's reader for those behind."""

    def __init__(
        self, broker: Broker, limits: Limits, places: PlacesLike, catch_ups: CatchUps, exact: ExactJournal
    ) -> None:
        super().__init__(broker, limits, places, exact, broker.metrics.door("mqtt"))
        self.catch_ups = catch_ups
        self.now_ms = 0  # when the turn under way is
        self._one = StoredBatch(1)
        self._feeds: dict[int, FilterFeed] = {}
        self.on_replay_over: Callable[[Subscription], None] = lambda _: None
        self._waiting: deque[Subscription | Backlog] = deque()
        self._backlogs: dict[Session, Backlog] = {}

    # Sessions and subscriptions come and go.

    def resume(self, session: Session) -> None:
        """Send to a session that got an outlet: first what it has not acknowledged, then all else."""
        for subscription in session.subscriptions.values():
            subscription.is_solo = has_own_form(subscription)
            if not subscription.qos and not subscription.is_replay:  # at most once: nothing from before
                subscription.position = self.broker.max_offset(subscription.queue_ref)
        window = session.window
        if window is not None and window.tail < window.head:
            backlog = self._backlog_of(session)
            backlog.resend_from = window.tail
            backlog.resend_until = window.head
            self._want_backlog(backlog)
        else:
            self._start_all(session)
        for catch_up in (session.catch_ups or {}).values():
            if catch_up.cursor < catch_up.until:
                subscription = session.subscriptions[catch_up.topic_filter]
                self.send_retained(subscription, subscription.qos)

    def _start_all(self, session: Session) -> None:
        """Begin with all subscriptions: with the first at once, with the rest in turn, as there may be thousands."""
        for number, subscription in enumerate(session.subscriptions.values()):
            if subscription.state == OFFLINE:
                if number < STARTED_AT_ONCE:
                    self._add(subscription)
                else:
                    self.want(subscription)

    def _add(self, subscription: Subscription) -> None:
        if subscription.group is not None:
            subscription.group.add(subscription)
            return
        feed = self._feeds.get(subscription.queue_ref)
        if feed is None:
            feed = self._feeds[subscription.queue_ref] = FilterFeed(self, subscription.queue_ref)
        feed.add(subscription)

    def start(self, subscription: Subscription) -> None:
        """Send to a subscription from its position on; after what its session has still to be sent again."""
        backlog = self._backlogs.get(subscription.session)
        if subscription.state == OFFLINE and (backlog is None or not backlog.is_resending):
            self._add(subscription)

    def change_qos(self, subscription: Subscription, qos: int) -> None:
        """Send at another QoS from now on."""
        subscription.qos = qos
        feed = self._feeds.get(subscription.queue_ref)
        if feed is not None and subscription.state == BEHIND:
            feed.note_slow(subscription)

    def stop(self, subscription: Subscription) -> None:
        """Send no more to a subscription; it knows its position then."""
        if subscription.state == SHARED and subscription.group is not None:
            subscription.group.remove(subscription)
        elif subscription.state not in {OFFLINE, SETTLING}:
            feed = self._feeds[subscription.queue_ref]
            feed.remove(subscription)
            if not feed.subscription_count:
                del self._feeds[subscription.queue_ref]

    def pause(self, session: Session) -> None:
        """Send no more to a session, whose outlet is gone; each subscription that is still live is to be stopped."""
        session.outlet = None
        backlog = self._backlogs.pop(session, None)
        if backlog is not None:
            backlog.stop_waiting()

    def revoke(self, session: Session, may: Permissions) -> None:
        """Take as acknowledged what is in flight for filters that may not be read: it is not sent again."""
        window = session.window
        if window is None:
            return
        for number in unacked_denied(session, window, may):
            self.let_go(session, window, number)

    def let_go(self, session: Session, window: InflightWindow, number: int) -> None:
        """Take a message of a session's window as acknowledged, which may let others leave it."""
        if window.state_of(number) != ONCE_SENT:
            self.exact.note_complete(session, (number,))
        window.drop(number)
        self._note_left(session, window)

    def position_of(self, subscription: Subscription) -> int:
        """Return the next offset to send."""
        feed = self._feeds.get(subscription.queue_ref)
        return subscription.position if feed is None else feed.position_of(subscription)

    def send_retained(self, subscription: Subscription, qos: int) -> None:
        """Send the retained messages that match, as the window and the outlet allow."""
        walk = make_walk(self.broker.retained, subscription, qos)
        if walk is None:
            return  # there is none, or was none at the SUBSCRIBE: what came since comes by the queue
        backlog = self._backlog_of(subscription.session)
        backlog.retained.append(walk)
        self._want_backlog(backlog)

    def acknowledge(self, session: Session, columns: RunColumns) -> None:
        """Take a run of PUBACK, PUBREC or PUBCOMP: places move on, and what waited for room is run."""
        window = session.open_window(self.inflight_max)
        window.acknowledge(columns)
        self._note_left(session, window)  # first: of what left nothing need be known any more
        if window.changed:
            self.exact.note_changed(session, window)
        self.wake(session)

    def _note_left(self, session: Session, window: InflightWindow) -> None:
        """Move the places of those subscriptions of which messages left the window."""
        for i in range(window.touched_count):
            source = window.touched_source(i)
            subscription = session.sources[source]
            if subscription is None:
                self._forget_retained(session, window)
            elif subscription.state == GONE:
                session.free_source(subscription)
            elif subscription.group is not None:
                subscription.group.settle(subscription, window)
            elif subscription.floor_slot != NO_SLOT:
                is_empty = not window.count_of(source)
                floor = self.position_of(subscription) if is_empty else window.floor_of(source)
                if subscription.done_before is not None:  # what was sent before the kill is not in order
                    floor = window.lowest_offset(source, self.position_of(subscription))
                    if is_empty and subscription.position >= subscription.dup_until:
                        subscription.done_before = None
                self.places.set(subscription.floor_slot, floor)
            if subscription is not None and subscription.is_replay and not window.count_of(source):
                self.on_replay_over(subscription)

    def _forget_retained(self, session: Session, window: InflightWindow) -> None:
        kept = session.retained_inflight or {}
        done = Counter(kept.pop(number) for number in list(takewhile(window.tail.__gt__, kept)))
        for catch_up, count in done.items():
            self.catch_ups.note_done(catch_up, count)
            self._maybe_end(session, catch_up)

    def _maybe_end(self, session: Session, catch_up: CatchUp) -> None:
        """Let go of a catch-up of which everything was sent and acknowledged."""
        if catch_up.is_over and not catch_up.is_ended:
            self.catch_ups.end(catch_up)
            self.exact.forget_slot(session, catch_up.slot)
            session.drop_catch_up(catch_up)

    def wake(self, session: Session) -> None:
        """Run what waited for room in the window or in the outlet."""
        if session.blocked:
            blocked = session.blocked.copy()
            session.blocked.clear()
            for subscription in blocked:
                subscription.is_blocked = False
                self.want(subscription)
        for subscription in session.shared:
            subscription.group.run_soon()  # type: ignore[union-attr] # shared, so it has one
        backlog = self._backlogs.get(session)
        if backlog is not None:
            self._want_backlog(backlog)

    def want(self, subscription: Subscription) -> None:
        """Let a subscription that is BEHIND read on, or one that is OFFLINE begin, in turn."""
        if not subscription.is_queued:
            subscription.is_queued = True
            self._waiting.append(subscription)
            self.broker.request_run(self)

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

    def on_ready(self, now_ms: int) -> bool:
        """Run those who wait for a turn; called by the broker."""
        sent = runs = 0
        self.now_ms = now_ms
        while self._waiting and sent < TURN_BYTES_MAX and runs < TURN_RUNS_MAX:
            item = self._waiting.popleft()
            item.is_queued = False
            sent += self._run_behind(item) if isinstance(item, Subscription) else self._run_backlog(item)
            runs += 1
        if self._waiting:
            self.broker.request_run(self)
        return False

    def _run_behind(self, subscription: Subscription) -> int:
        """Send a subscription that is behind what it can take now; return how many bytes."""
        session = subscription.session
        if subscription.state == OFFLINE and session.outlet is not None:
            self.start(subscription)
        if subscription.state != BEHIND or session.outlet is None or subscription.is_queued:
            return 0
        limit = min(BATCH_COUNT_MAX, session.room(self.inflight_max)) if subscription.qos else BATCH_COUNT_MAX
        if limit <= 0 or not session.outlet.is_writable:
            if not subscription.is_blocked:
                subscription.is_blocked = True
                session.blocked.append(subscription)
            return 0
        feed = self._feeds[subscription.queue_ref]
        batch = self.batch
        skip_oldest(self, subscription)
        limit = min(limit, feed.gap(subscription) or limit)
        if not self._read_behind(subscription, limit):
            feed.wait_for(subscription)
            return 0
        sent = self._send_batch(subscription) if batch.count else 0
        is_behind = not feed.place(subscription)
        if subscription.is_replay:
            sent += SCAN_COST
            if subscription.floor_slot != NO_SLOT:
                keep_places(self, subscription, subscription.position)
            if not is_behind:
                self.on_replay_over(subscription)
        if is_behind:
            self.want(subscription)
        return sent

    def _read_behind(self, subscription: Subscription, limit: int) -> bool:
        """Fill the batch with what is next and wanted; False where it is on its way."""
        batch = self.batch
        if self.broker.read(subscription.queue_ref, subscription.position, batch, limit, READ_BYTES_MAX) == AWAY:
            return False
        subscription.position = batch.next_offset
        if batch.count:
            self.drop_expired(batch, self.now_ms)
            if subscription.is_solo or subscription.done_before is not None:
                too_large = keep_wanted(batch, subscription)
                if too_large:
                    self.metrics.drop("too_large_for_subscriber", too_large)
        return True

    def _send_batch(self, subscription: Subscription) -> int:
        session = subscription.session
        encoder = self.encoder
        batch = self.batch
        form = self._form_of(subscription)
        if subscription.qos:
            window = session.open_window(self.inflight_max)
            data = encoder.encode(batch, subscription.qos, window.next_id(), subscription.dup_until, 0, form)
            enter(self, subscription)
            if subscription.floor_slot != NO_SLOT:
                keep_places(self, subscription, subscription.position)
        else:
            data = encoder.encode(batch, 0, 1, 0, 0, form)
        return self._write(session, data, batch)

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
        self.metrics.messages_out += batch.count
        self.metrics.bytes_out += self.encoder.body_bytes
        batch.clear()
        return len(data)

    def _run_backlog(self, backlog: Backlog) -> int:
        """Send some of a backlog; return how many bytes."""
        session = backlog.session
        if self._backlogs.get(session) is not backlog or session.outlet is None or not session.outlet.is_writable:
            return 0
        if backlog.is_resending:
            assert session.window is not None
            sent = self._resend(backlog, session.window)
            if backlog.resend_from >= backlog.resend_until:
                self._start_all(session)
        else:
            sent = self._send_some_retained(backlog)
        if backlog.is_done:
            del self._backlogs[session]
        elif sent or (not backlog.is_resending and self._may_send_retained(backlog)):
            self._want_backlog(backlog)
        return sent

    def _may_send_retained(self, backlog: Backlog) -> bool:
        """Return whether outlet and window take the next retained message."""
        session = backlog.session
        if not backlog.retained or session.outlet is None or not session.outlet.is_writable:
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
            if session.receive_max and window.unacked_before(number) >= session.receive_max:
                return 0  # an acknowledgement wakes it
            if window.state_of(number) == EXACT_RECEIVED:
                backlog.resend_from = number + 1
                return self._send_release(session, number)
            count = backlog.read_again(window, number, self.batch, self._one)
            if count > 0:
                break
            if count == AWAY:
                return 0  # it is woken
            self.metrics.drop("expired")
            self.let_go(session, window, number)
        backlog.resend_from = number + count
        subscription = session.sources[window.source_of(number)]
        batch = self.batch if subscription is not None else self._one
        retain = int(batch is self._one)
        qos = _EXACT if window.state_of(number) == EXACT_SENT else 1
        form = Form(session.level, self.now_ms) if subscription is None else self._form_of(subscription)
        data = self.encoder.encode(batch, qos, number % ID_COUNT + 1, _ALL, retain, form)
        return self._write(session, data, batch)

    def _send_release(self, session: Session, number: int) -> int:
        """Send the PUBREL of a message at QoS 2 that the client has; return how many bytes."""
        assert session.outlet is not None
        session.outlet.write(b"\x62\x02" + (number % ID_COUNT + 1).to_bytes(2, "big"))
        return 4

    def _send_some_retained(self, backlog: Backlog) -> int:
        sent = 0
        for _ in range(RETAINED_RUN_MAX):
            if not self._may_send_retained(backlog):
                break
            walk = backlog.retained[0]
            sent += TURN_BYTES_MAX // (LOOKS_MAX if walk.catch_up is None else OWED_LOOKS_MAX)  # to look costs, too
            record = walk.take()
            if record is not None and self.broker.read_record(record, self._one):
                sent += self._send_one_retained(walk, record)
            if walk.is_over:
                backlog.retained.popleft()
                if walk.catch_up is not None:
                    self._maybe_end(backlog.session, walk.catch_up)
        return sent

    def _send_one_retained(self, walk: RetainedWalk | CatchUpWalk, record: bytes) -> int:
        session = walk.subscription.session
        version = self.broker.retained.version_of(record)
        self.drop_expired(self._one, self.now_ms)
        if not self._one.count or (session.packet_bytes_max and not fits(self._one, 0, walk.subscription)):
            return 0
        first_id = session.open_window(self.inflight_max).next_id() if walk.qos else 1
        form = Form(session.level, self.now_ms, walk.subscription.identifier)  # no aliases: it may not be sent yet
        data = self.encoder.encode(self._one, walk.qos, first_id, -1, 1, form)
        is_numbered = self.encoder.id_count > 0
        catch_up = walk.catch_up
        if catch_up is not None and not self.catch_ups.note_sent(catch_up, version, is_in_flight=is_numbered):
            walk.is_over = True  # it goes on when the session comes back
            return 0
        if is_numbered:
            is_exact = walk.qos == _EXACT and self._one.flag[0] & FLAG_QOS_MASK == _EXACT
            number = enter_retained(
                session, self.inflight_max, catch_up, version, EXACT_SENT if is_exact else ONCE_SENT
            )
            if is_exact and catch_up is not None:
                self.exact.note_sent(session, catch_up.slot, [(number, version)])
        return self._write(session, data, self._one)

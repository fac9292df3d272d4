"""Deliveries: feeds for the subscriptions that keep up, turns for those that do not.

Work of one turn is bounded: a session with more to read is run again in the next one, behind all others.
"""

from __future__ import annotations

from collections.abc import Callable

from core.broker import Broker
from core.message import AWAY
from gateway.auth.permissions import Permissions
from gateway.mqtt.catch_up import CatchUps
from gateway.mqtt.columns import RunColumns
from gateway.mqtt.eras import Era, add_era
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.feeds import FilterFeed, Limits, PlacesLike, enter, keep_places
from gateway.mqtt.giving_way import skip_oldest
from gateway.mqtt.inflight import EXACT_RECEIVED, EXACT_SENT, ONCE_SENT, InflightWindow
from gateway.mqtt.packets import NO_LOCAL, PUBREC
from gateway.mqtt.publish_encoder import BATCH_COUNT_MAX, READ_BYTES_MAX
from gateway.mqtt.redelivery import TURN_BYTES_MAX, Redelivery
from gateway.mqtt.session import BEHIND, GONE, NO_SLOT, OFFLINE, SETTLING, SHARED, Session, Subscription
from gateway.mqtt.sieve import NOT_PERMITTED, TOO_LARGE, has_own_form, keep_wanted, leave_out_sent, unacked_denied
from gateway.mqtt.topics import is_shared

SESSION_ENDED = "session_ended"  # how a message ends that the session was owed, and nobody else is
TURN_RUNS_MAX = 256  # reads of one turn: small ones cost time, too
STARTED_AT_ONCE = 64  # subscriptions of a session that comes back; chosen: of more the rest waits for the next turn
SCAN_COST = TURN_BYTES_MAX // 2  # of a batch of a replay: most of it may be for others, and is looked at all the same


class Delivery(Redelivery):
    """All deliveries of a door. It is itself the broker's reader for those behind."""

    def __init__(
        self, broker: Broker, limits: Limits, places: PlacesLike, catch_ups: CatchUps, exact: ExactJournal
    ) -> None:
        super().__init__(broker, limits, places, catch_ups, exact)
        self._feeds: dict[int, FilterFeed] = {}
        self.on_replay_over: Callable[[Subscription], None] = lambda _: None

    # Sessions and subscriptions come and go.

    def resume(self, session: Session) -> None:
        """Send to a session that got an outlet: first what it has not acknowledged, then all else."""
        for subscription in session.subscriptions.values():
            subscription.is_solo = has_own_form(subscription)
            if not subscription.qos and not subscription.is_replay:  # at most once: nothing from before
                subscription.position = self.broker.max_offset(subscription.queue_ref)
                subscription.dup_until = subscription.position
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

    def note_era(self, subscription: Subscription, rules: int) -> None:
        """Keep what a subscription was for the messages that it was sent, before it gets other rules."""
        position = self.position_of(subscription)
        if subscription.group is None and position > subscription.first_offset:
            was = Era(position, subscription.dup_until, subscription.qos | subscription.options & NO_LOCAL)
            subscription.eras = add_era(subscription.eras, was, rules)

    def change_qos(self, subscription: Subscription, qos: int) -> None:
        """Send at another QoS from now on."""
        subscription.qos = qos
        feed = self._feeds.get(subscription.queue_ref)
        if feed is not None and subscription.state == BEHIND:
            feed.note_slow(subscription)
        if not qos and subscription.is_blocked:  # it needs no room in the window any more
            subscription.is_blocked = False
            subscription.session.blocked.remove(subscription)
            self.want(subscription)
        elif not qos and subscription.state == SHARED and subscription.group is not None:
            subscription.group.run_soon()

    def set_aside(self, subscription: Subscription) -> None:
        """Send no more to a subscription until it is started again, from where it is now: it loses nothing by that."""
        feed = self._feeds.get(subscription.queue_ref)
        if feed is not None:
            feed.spare(subscription)
        self.stop(subscription)

    def stop(self, subscription: Subscription) -> None:
        """Send no more to a subscription; it knows its position then."""
        if subscription.state == SHARED and subscription.group is not None:
            if subscription.session.outlet is None:
                subscription.group.remove(subscription)
            else:
                subscription.group.retire(subscription)
        elif subscription.state not in {OFFLINE, SETTLING}:
            feed = self._feeds[subscription.queue_ref]
            feed.remove(subscription)
            if not feed.subscription_count:
                del self._feeds[subscription.queue_ref]

    def pause(self, session: Session) -> None:
        """Send no more to a session, whose outlet is gone; each subscription that is still live is to be stopped."""
        session.outlet = None
        for subscription in [one for one in session.shared if one.state == GONE]:
            subscription.group.take_back(subscription)  # type: ignore[union-attr] # not finished, so it has one
        backlog = self._backlogs.pop(session, None)
        if backlog is not None:
            backlog.stop_waiting()

    def revoke(self, session: Session, may: Permissions) -> None:
        """Send nothing again of what is in flight for filters that may not be read; at QoS 2 it is still released."""
        window = session.window
        if window is None:
            return
        # A client that has one has had it: all that is left is to release it.
        denied = [one for one in unacked_denied(session, window, may) if window.state_of(one) != EXACT_RECEIVED]
        self._note_ends(session, window, denied, NOT_PERMITTED)
        self.exact.note_received(session, [one for one in denied if window.state_of(one) != ONCE_SENT])
        for number in denied[::-1]:  # the newest first: then nearly all leave the window together, with the oldest
            if window.state_of(number) == ONCE_SENT:
                self.let_go(session, window, number)
            else:
                window.release(number)

    def note_session_end(self, session: Session) -> None:
        """Note that a session ends, of what it is owed of shared filters at QoS 2: no other member gets that.

        What is owed of one filter is noted together: one by one the 2,048 of a full window take 8 ms and more.
        """
        window = session.window
        owed: dict[int, list[int]] = {}
        number = 0 if window is None else window.next_unacked(window.tail)
        while window is not None and number < window.head:
            if window.state_of(number) == EXACT_SENT:
                owed.setdefault(window.source_of(number), []).append(window.offset_of(number))
            number = window.next_unacked(number + 1)
        for source, offsets in owed.items():
            subscription = session.sources[source]
            if subscription is not None and is_shared(subscription.topic_filter):
                self._note_group_ends(subscription.topic_filter, sorted(offsets), SESSION_ENDED, 0)

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

    def acknowledge(self, session: Session, columns: RunColumns) -> None:
        """Take a run of PUBACK, PUBREC or PUBCOMP: places move on, and what waited for room is run."""
        window = session.open_window(self.inflight_max)
        acked = window.acknowledge(columns)
        if columns.ack_type != PUBREC:
            self.metrics.acknowledged += acked
        # Places before the journal of QoS 2: a start passes over what the journal says of messages below their place.
        self._note_left(session, window)
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
                self._settle_gone(session, subscription, window)
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

    def _settle_gone(self, session: Session, gone: Subscription, window: InflightWindow) -> None:
        """Let go of a subscription that ended when nothing of it is in flight.

        A group knows what is in flight by the subscription that it handed it to. That is not `gone` where this one took
        over what was in flight at a change to QoS 0, and it may have ended since then, too.
        """
        for one in [each for each in session.shared if each.topic_filter == gone.topic_filter]:
            one.group.settle(one, window)  # type: ignore[union-attr] # shared, so it has one
        heir = session.subscriptions.get(gone.topic_filter)
        session.free_source(gone)
        if not window.count_of(gone.source):
            self.on_left(session, gone.floor_slot)
            if heir is not None and heir.is_replay:
                self.on_replay_over(heir)

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

    def on_ready(self, now_ms: int) -> bool:
        """Run the sessions that wait for a turn; called by the broker."""
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
        if session.pace is not None:
            limit = min(limit, session.pace.room(self.now_ms))
        if limit <= 0 or not session.outlet.is_writable or not skip_oldest(self, subscription, self.now_ms):
            if not subscription.is_blocked:
                subscription.is_blocked = True
                session.blocked.append(subscription)
            return 0
        feed = self._feeds[subscription.queue_ref]
        limit = min(limit, feed.gap(subscription) or limit)
        if not self._read_behind(subscription, limit):
            feed.wait_for(subscription)
            return 0
        sent = self._send_batch(subscription)
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
        pace = subscription.session.pace
        bytes_max = READ_BYTES_MAX if pace is None else min(READ_BYTES_MAX, pace.room_bytes(self.now_ms))
        if self.broker.read(subscription.queue_ref, subscription.position, batch, limit, bytes_max) == AWAY:
            return False
        subscription.position = batch.next_offset
        if batch.count:
            if subscription.done_before is not None:  # first: it has not expired, whatever its time
                leave_out_sent(batch, subscription)
            self.drop_expired(batch, self.now_ms, subscription.queue_ref, subscription.session.client_id)
            if subscription.is_solo:
                too_large = keep_wanted(batch, subscription)
                if too_large:
                    self._note_too_large(subscription, too_large)
        return True

    def _note_too_large(self, subscription: Subscription, offsets: list[int]) -> None:
        self.metrics.drop(TOO_LARGE, len(offsets))
        reader = self._reader_of(subscription)
        self.broker.lasting_endings.note(reader, offsets, len(offsets), TOO_LARGE, self.now_ms)

    def _reader_of(self, subscription: Subscription) -> tuple[bytes, bytes]:
        """Return the name under which endings of a subscription's messages are kept."""
        return self.broker.queue_key(subscription.queue_ref), subscription.session.client_id

    def _send_batch(self, subscription: Subscription) -> int:
        session = subscription.session
        encoder = self.encoder
        batch = self.batch
        if not batch.count:
            if subscription.floor_slot != NO_SLOT:  # all was left out: the log need not keep it for this one
                keep_places(self, subscription, subscription.position)
            return 0
        form = self._form_of(subscription)
        if subscription.qos:
            window = session.open_window(self.inflight_max)
            data = encoder.encode(batch, subscription.qos, window.next_id(), subscription.dup_until, 0, form)
            if subscription.dup_until:
                self._note_again(session)
            enter(self, subscription)
            if subscription.floor_slot != NO_SLOT:
                keep_places(self, subscription, subscription.position)
        else:
            data = encoder.encode(batch, 0, 1, 0, 0, form)
        return self._write(session, data, batch)

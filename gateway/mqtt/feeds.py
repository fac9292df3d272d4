"""The feed of one topic filter: all live subscriptions of it that are at the same place, read for and encoded once.

A subscription that cannot keep up falls behind, and from then on reads by itself until it has caught up; the feed
never waits. It is read for only while its connection takes output, so a stalled one costs its place in the queue.
"""

from __future__ import annotations

from typing import Protocol

from core.broker import Broker
from core.lmq.expiry import take_expired
from core.lmq.waiters import Reader
from core.message import StoredBatch
from core.metrics import DoorMetrics
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.publish_encoder import BATCH_COUNT_MAX, OLD_FORM, READ_BYTES_MAX, Form, PublishEncoder
from gateway.mqtt.queued import Queued
from gateway.mqtt.queued_limits import WaitingMax
from gateway.mqtt.session import ABREAST, AHEAD, BEHIND, NO_SLOT, OFFLINE, Session, Subscription

ROOM_MIN = BATCH_COUNT_MAX // 8  # a window with less room falls behind rather than slow the others down
_BATCH_COUNT_MAX = BATCH_COUNT_MAX
_READ_BYTES_MAX = READ_BYTES_MAX
_ROOM_MIN = ROOM_MIN
_NO_SLOT = NO_SLOT
_NOT_KNOWN = -(2**62)  # further behind than any
_ALL = 2**62  # above any queue offset
_LEVEL_5 = 5
_EXACT = 2
_OLD_FORM = OLD_FORM


class PlacesLike(Protocol):
    """Numbers that survive a killed process."""

    def get(self, slot: int) -> int:
        """Return the number of a slot."""

    def set(self, slot: int, value: int) -> None:
        """Set the number of `slot`."""


class Limits(Protocol):
    """The settings that bound deliveries."""

    @property
    def inflight_max(self) -> int:
        """Messages at QoS 1 that a session is sent and has not acknowledged."""

    @property
    def queued_count_max(self) -> int:
        """Messages at QoS 1 and 2 that wait for a client before the oldest give way, 0 for no limit."""

    @property
    def queued_bytes_max(self) -> int:
        """Bytes of their bodies, in the same way."""

    @property
    def lag_count_max(self) -> int:
        """Messages that a slow subscriber at QoS 0 may be behind before it loses them."""


class Desk(Reader):
    """What a feed shares with the others of its door."""

    def __init__(
        self, broker: Broker, limits: Limits, places: PlacesLike, exact: ExactJournal, metrics: DoorMetrics
    ) -> None:
        self.broker = broker
        self.places = places
        self.exact = exact
        self.form_5 = Form(_LEVEL_5, 0)
        self.metrics = metrics
        self.inflight_max = limits.inflight_max
        self.lag_count_max = limits.lag_count_max
        waiting_max = WaitingMax(limits.queued_count_max, limits.queued_bytes_max)
        self.queued = Queued(broker, broker.table("mqtt_queued_limits"), waiting_max)
        self.batch = StoredBatch(BATCH_COUNT_MAX)
        self.encoder = PublishEncoder(BATCH_COUNT_MAX)

    def want(self, subscription: Subscription) -> None:
        """Let a subscription that is BEHIND read on, in turn."""
        raise NotImplementedError

    def wake(self, session: Session) -> None:
        """Run what waits for a session to be ready."""
        raise NotImplementedError

    def drop_expired(self, batch: StoredBatch, now_ms: int, queue_ref: int = -1, reader: bytes = b"") -> None:
        """Take what has outlived its time to live out of a batch.

        Args:
            batch: What was read.
            now_ms: The time.
            queue_ref: Where it was read, -1 where that does not matter.
            reader: For which client or group; empty for all that are abreast.
        """
        expired = take_expired(batch, now_ms, -1, _ALL)
        if expired:
            self.metrics.drop("expired", len(expired))
            if queue_ref >= 0:
                queue = self.broker.queue_key(queue_ref)
                self.broker.lasting_endings.note((queue, reader), expired, len(expired), "expired", now_ms)

    def note_skipped(self, subscription: Subscription, until: int, reason: str, now_ms: int) -> None:
        """Note that a subscription loses what it has not been sent before an offset."""
        first = subscription.position
        reader = self.broker.queue_key(subscription.queue_ref), subscription.session.client_id
        sent = sorted([offset for offset in subscription.done_before or () if first <= offset < until])
        self.metrics.drop(reason, until - first - len(sent))
        for end in (*sent, until):
            self.broker.lasting_endings.note_run(reader, first, end, reason, now_ms)
            first = end + 1


class FilterFeed(Reader):
    """All live subscriptions of one filter; the broker's reader of its light queue."""

    __slots__ = (
        "_abreast",
        "_ahead",
        "_away",
        "_desk",
        "_slow",
        "_slowest",
        "_solo",
        "position",
        "queue_ref",
        "subscription_count",
    )

    def __init__(self, desk: Desk, queue_ref: int) -> None:
        self.queue_ref = queue_ref
        self.position = 0  # where those abreast are
        self.subscription_count = 0
        self._desk = desk
        self._abreast: list[Subscription] = []
        self._ahead: list[Subscription] = []
        self._slow: list[Subscription] = []  # those behind at QoS 0: they may lose messages
        self._slowest = _NOT_KNOWN  # where the slowest of them was, at the earliest
        self._away: list[Subscription] = []  # those behind whose next messages are on their way
        self._solo: list[Subscription] = []  # those that are always BEHIND: each is written to in a form of its own

    def add(self, subscription: Subscription) -> None:
        """Take in a subscription, OFFLINE till now."""
        if not self.subscription_count:
            self._desk.broker.park(self.queue_ref, self)
        self.subscription_count += 1
        if subscription.is_solo:
            self._solo.append(subscription)
            self._put_behind(subscription)
        elif not self.place(subscription):
            self._put_behind(subscription)

    def remove(self, subscription: Subscription) -> None:
        """Let go of a subscription; it is OFFLINE then and knows its position."""
        if subscription.state == ABREAST:
            self._take_out(subscription)
        elif subscription.state == AHEAD:
            self._ahead.remove(subscription)
        elif subscription in self._slow:
            self._slow.remove(subscription)
            self._drop(subscription, self._desk.broker.max_offset(self.queue_ref), 0)
        if subscription.is_solo:
            self._solo.remove(subscription)
        if subscription in self._away:
            self._away.remove(subscription)
        subscription.state = OFFLINE
        self.subscription_count -= 1
        if not self._abreast and self._ahead:
            self._meet()
        if not self.subscription_count:
            self._desk.broker.unpark(self.queue_ref, self)
            self._desk.broker.cancel_run(self)

    def reader_count(self) -> int:
        """Return how many connected sessions it reads for."""
        return self.subscription_count

    def place(self, subscription: Subscription) -> bool:
        """Try to put a subscription abreast or ahead; False where it is behind, and has something to read."""
        if subscription.is_solo:
            return subscription.position >= self._desk.broker.max_offset(self.queue_ref)
        if subscription.position < subscription.dup_until:
            return False
        if not self._abreast:
            if subscription.position < self._desk.broker.max_offset(self.queue_ref):
                return False
            self.position = subscription.position
        if subscription.position < self.position:
            return False
        if subscription in self._slow:
            self._slow.remove(subscription)
        if subscription.position > self.position:
            subscription.state = AHEAD
            self._ahead.append(subscription)
        else:
            self._put_abreast(subscription)
        return True

    def _put_abreast(self, subscription: Subscription) -> None:
        subscription.state = ABREAST
        subscription.abreast_at = len(self._abreast)
        self._abreast.append(subscription)

    def _take_out(self, subscription: Subscription) -> None:
        """Take one from among those abreast: the last of them takes its place."""
        subscription.position = self.position
        last = self._abreast.pop()
        if last is not subscription:
            last.abreast_at = subscription.abreast_at
            self._abreast[last.abreast_at] = last

    def wait_for(self, subscription: Subscription) -> None:
        """Let a subscription that is BEHIND read on when its next messages, which are on their way, are here."""
        if subscription not in self._away:
            self._away.append(subscription)

    def gap(self, subscription: Subscription) -> int:
        """Return how far a subscription that is BEHIND may read before it meets the others, 0 for no limit."""
        return max(self.position - subscription.position, 0) if self._abreast else 0

    def position_of(self, subscription: Subscription) -> int:
        """Return the next offset to send."""
        return self.position if subscription.state == ABREAST else subscription.position

    def on_ready(self, now_ms: int) -> bool:
        """Send some of what is new to those abreast; called by the broker when the queue grew."""
        max_offset = self._desk.broker.max_offset(self.queue_ref)
        has_more = bool(self._abreast) and self.position < max_offset and self._advance(now_ms)
        if self._away:
            away, self._away = self._away, []
            for subscription in away:
                self._desk.want(subscription)
        for subscription in self._solo:
            if subscription.position < max_offset and not subscription.is_blocked:
                self._desk.want(subscription)
        if self._slow and max_offset - self._slowest > self._desk.lag_count_max:
            self._trim(now_ms)
        return has_more

    def _advance(self, now_ms: int) -> bool:
        """Read on once for those abreast; return whether there is more to read at once."""
        limit = self._shed()
        if not self._abreast:
            self._meet()
            return False
        for subscription in self._ahead:
            limit = min(limit, subscription.position - self.position)
        desk = self._desk
        batch = desk.batch
        broker = desk.broker
        before = self.position
        broker.read(self.queue_ref, before, batch, limit, _READ_BYTES_MAX)
        if self._ahead and batch.count and batch.queue_offset[0] > before:
            self.position = batch.queue_offset[0]  # what was between is gone; those ahead are met there first
            batch.clear()
        else:
            self.position = batch.next_offset
        if batch.count:
            desk.drop_expired(batch, now_ms, self.queue_ref)
            desk.form_5.now_ms = now_ms
            self._send()
            batch.clear()
        if self._ahead:
            self._meet()
        return before < self.position < broker.max_offset(self.queue_ref)

    def _shed(self) -> int:
        """Put those behind that cannot take more now; return how many messages all others can take."""
        limit = _BATCH_COUNT_MAX
        inflight_max = self._desk.inflight_max
        stuck: list[Subscription] | None = None
        for subscription in self._abreast:
            session = subscription.session
            room = _BATCH_COUNT_MAX if session.outlet is not None and session.outlet.is_writable else 0
            if room and subscription.qos:
                room = session.room(inflight_max)
                if room < _ROOM_MIN and len(self._abreast) > 1:
                    room = 0
            if room <= 0:
                stuck = stuck or []
                stuck.append(subscription)
            elif room < limit:
                limit = room
        if stuck is not None:
            self._fall_behind(stuck)
        return limit

    def _fall_behind(self, stuck: list[Subscription]) -> None:
        for subscription in stuck:
            self._take_out(subscription)
            self._put_behind(subscription)

    def _put_behind(self, subscription: Subscription) -> None:
        subscription.state = BEHIND
        self.note_slow(subscription)
        self._desk.want(subscription)

    def note_slow(self, subscription: Subscription) -> None:
        """Remember whether a subscription is both BEHIND and at QoS 0."""
        if subscription in self._slow:
            self._slow.remove(subscription)
        if not subscription.qos and not subscription.is_replay:
            self._slow.append(subscription)
            self._slowest = _NOT_KNOWN

    def spare(self, subscription: Subscription) -> None:
        """Have a subscription lose nothing when it is removed."""
        if subscription in self._slow:
            self._slow.remove(subscription)

    def _meet(self) -> None:
        """Take in those ahead that the feed has come to; where none is abreast, go to the next of them."""
        if not self._abreast and self._ahead:
            positions = [subscription.position for subscription in self._ahead]
            self.position = min(positions)
            self._desk.broker.request_run(self)
        for subscription in [one for one in self._ahead if one.position <= self.position]:
            self._ahead.remove(subscription)
            self._put_abreast(subscription)

    def _send(self) -> None:
        """Send the batch to all abreast: the same bytes to those at QoS 0, numbered ones to those at QoS 1."""
        desk = self._desk
        batch = desk.batch
        encoder = desk.encoder
        metrics = desk.metrics
        plain: bytes | None = None
        others: list[Subscription] | None = None
        for subscription in self._abreast:
            if subscription.qos or subscription.session.level == _LEVEL_5:
                others = others or []
                others.append(subscription)
            else:
                if plain is None:
                    plain = encoder.encode(batch, 0, 1)
                subscription.session.outlet.write(plain)  # type: ignore[union-attr] # abreast, so it has one
        if others is not None:
            self._send_others(others)
        metrics.messages_out += batch.count * len(self._abreast)
        metrics.bytes_out += encoder.body_bytes * len(self._abreast)

    def _send_others(self, subscriptions: list[Subscription]) -> None:
        """Send to those at QoS 1 and 2, and of MQTT 5: those of one QoS and version share what was encoded."""
        while subscriptions:
            like = subscriptions[0]
            is_5 = like.session.level == _LEVEL_5
            same = subscriptions
            rest: list[Subscription] = []
            if len(subscriptions) > 1:
                same = []
                for subscription in subscriptions:
                    is_alike = subscription.qos == like.qos and (subscription.session.level == _LEVEL_5) == is_5
                    (same if is_alike else rest).append(subscription)
            self._send_alike(same, like.qos, self._desk.form_5 if is_5 else _OLD_FORM)
            subscriptions = rest

    def _send_alike(self, subscriptions: list[Subscription], qos: int, form: Form) -> None:
        desk = self._desk
        batch = desk.batch
        encoder = desk.encoder
        data: bytes | None = None
        for subscription in subscriptions:
            session = subscription.session
            if not qos:
                if data is None:
                    data = encoder.encode(batch, 0, 1, 0, 0, form)
                session.outlet.write(data)  # type: ignore[union-attr] # abreast, so it has one
                continue
            window = session.open_window(desk.inflight_max)
            if data is None:
                data = encoder.encode(batch, qos, window.next_id(), 0, 0, form)
            elif encoder.id_count:
                data = encoder.renumber(window.next_id())
            if encoder.id_count:
                enter(desk, subscription)
            if subscription.floor_slot != _NO_SLOT:
                keep_places(desk, subscription, self.position)
            session.outlet.write(data)  # type: ignore[union-attr] # abreast, so it has one

    def _trim(self, now_ms: int) -> None:
        """Take from those too far behind at QoS 0 what they have missed."""
        max_offset = self._desk.broker.max_offset(self.queue_ref)
        lag_max = self._desk.lag_count_max
        for subscription in self._slow:
            if max_offset - subscription.position > lag_max:
                self._drop(subscription, max_offset, now_ms)
        positions = [subscription.position for subscription in self._slow]
        self._slowest = min(positions)

    def _drop(self, subscription: Subscription, until: int, now_ms: int) -> None:
        if until > subscription.position:
            self._desk.note_skipped(subscription, until, "slow_subscriber", now_ms)
            subscription.position = until


def enter(desk: Desk, subscription: Subscription) -> None:
    """Enter the desk's batch, which is about to be sent, into the window of a session."""
    session = subscription.session
    window = session.open_window(desk.inflight_max)
    before = window.head
    window.push(desk.batch, subscription.source, subscription.qos)
    if subscription.qos == _EXACT and subscription.floor_slot != _NO_SLOT:
        sent = window.exact_between(before, window.head)
        if sent:
            desk.exact.note_sent(session, subscription.floor_slot, sent)


def keep_places(desk: Desk, subscription: Subscription, position: int) -> None:
    """Write down that a durable subscription was sent everything before `position`."""
    desk.places.set(subscription.sent_slot, max(position, subscription.dup_until))  # what was sent ever is sent again
    window = subscription.session.window
    if window is None or not window.count_of(subscription.source):
        desk.places.set(subscription.floor_slot, position)

"""One group of a shared subscription: the pop that its members take from, and which member a message goes to.

A message at QoS 1 is a member's until it acknowledges it, or until its connection is gone: then another gets it. One at
QoS 2 is its session's for good from the moment it is sent, and done for the group: no other session gets it,
MQTT-4.8.2-5. Offline members get nothing; a group without a connected member collects.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import takewhile
from typing import Protocol

from core.broker import Broker
from core.lmq.queue_name import mqtt_queue_name
from core.lmq.waiters import Reader
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, StoredBatch
from core.metrics import DoorMetrics
from core.stage import Stage
from gateway.mqtt.assignment import HASHES, STICKY, Assignment, Strategy, find_key
from gateway.mqtt.exact import ExactJournal
from gateway.mqtt.feeds import PlacesLike
from gateway.mqtt.inflight import InflightWindow
from gateway.mqtt.publish_encoder import BATCH_COUNT_MAX, PublishEncoder
from gateway.mqtt.session import GONE, NO_SLOT, NOTHING_OWED, OFFLINE, SHARED, Session, Subscription
from gateway.mqtt.sieve import TOO_LARGE, keep, keep_wanted, make_form
from gateway.mqtt.topics import split_share

EXPIRED, SENT, HANDED_OVER = "expired", "sent", "handed_over"  # how messages end that no member acknowledges
OWNER_PREFIX = b"mqtt:"  # of a group's name among those that share light queues
TAKE_BYTES_MAX = 512 * 1024  # an eighth of a turn's, so that no single take uses it up
_EXACT = 2
TURN_BYTES_MAX = 4 << 20  # handed out for one group in one turn; what is left waits for the next


class SharedDesk(Protocol):
    """What groups use of the door's deliveries."""

    broker: Broker
    metrics: DoorMetrics
    encoder: PublishEncoder
    inflight_max: int
    exact: ExactJournal
    places: PlacesLike

    def drop_expired(self, batch: StoredBatch, now_ms: int, queue_ref: int = -1, reader: bytes = b"") -> None:
        """Take what has outlived its time to live out of a batch."""

    def let_go(self, session: Session, window: InflightWindow, number: int) -> None:
        """Take a message out of a window: it is not this session's any more."""


class SharedGroup(Reader):
    """One group on one filter, and the reader that hands its messages out in turn."""

    __slots__ = (
        "_assigned",
        "_batch",
        "_desk",
        "_leavers",
        "_members",
        "_next",
        "_owned",
        "_pop",
        "_sharing",
        "is_new",
        "light_name",
        "owner",
        "queue_ref",
        "redelivered",
        "topic_filter",
    )

    def __init__(self, sharing: Strategy, desk: SharedDesk, topic_filter: bytes) -> None:
        self._sharing = sharing
        group, inner = split_share(topic_filter)
        self.topic_filter = inner
        self.light_name = mqtt_queue_name(inner)
        self.owner = OWNER_PREFIX + group
        self.queue_ref = desk.broker.intern_queue(self.light_name)
        self._desk = desk
        self.is_new = not desk.broker.pop.knows(self.light_name, self.owner)
        self._pop = desk.broker.pop.open(self.light_name, self.owner, desk.broker.max_offset(self.queue_ref))
        self._batch = StoredBatch(BATCH_COUNT_MAX)
        self._members: list[Subscription] = []
        self._leavers: list[Subscription] = []  # GONE, and not done with what they were sent
        self._next = 0  # whose turn it is
        self._assigned = Assignment()
        self.redelivered = 0  # messages that members were handed after others, since the group is there
        self._owned: dict[int, bytes] = {}  # sent at QoS 2 by a process before to a client, perhaps not done here

    @property
    def name(self) -> bytes:
        """What subscribers call it."""
        return self.owner[len(OWNER_PREFIX) :]

    @property
    def floor(self) -> int:
        """The first offset that is not done."""
        return self._pop.floor

    @property
    def next_offset(self) -> int:
        """The first offset that no member was handed yet."""
        return self._pop.next_offset

    @property
    def fresh_from(self) -> int:
        """The first offset that no member had been handed when this process opened the group."""
        return self._pop.fresh_from

    def stage(self, offset: int) -> Stage:
        """Return how far a message is."""
        return self._pop.stage(offset)

    def find_holder(self, offset: int) -> bytes:
        """Return the client that has a message and has not acknowledged it, empty where none is known."""
        having = (one for one in (*self._members, *self._leavers) if offset in (one.unacked or {}).values())
        return next((one.session.client_id for one in having), b"")

    def drop(self, leave_alone: Callable[[Subscription], None]) -> None:
        """Forget what was taken and done: the group is no more. What is under way goes on with those that have it.

        Those are told by `leave_alone` first: nobody else is going to be handed it.
        """
        for subscription in self._leavers.copy():
            leave_alone(subscription)
            self._let_leave(subscription)
        self._desk.broker.pop.drop(self.light_name, self.owner)

    def add(self, subscription: Subscription) -> None:
        """Hand messages to a member, too, from the next turn on."""
        if not self._members:
            self._desk.broker.park(self.queue_ref, self)
        subscription.state = SHARED
        self._members.append(subscription)
        subscription.session.shared.append(subscription)
        self.run_soon()

    def remove(self, subscription: Subscription) -> None:
        """Hand a member nothing more, and what it has not acknowledged to others."""
        self._stop_handing(subscription)
        subscription.session.shared.remove(subscription)
        self._give_others(subscription)

    def retire(self, subscription: Subscription) -> None:
        """Hand a member that gives up its subscription nothing more; what it was sent it finishes, MQTT-3.10.4-3."""
        self._stop_handing(subscription)
        if subscription.unacked:
            self._leavers.append(subscription)
        else:
            subscription.session.shared.remove(subscription)

    def take_back(self, subscription: Subscription) -> None:
        """Hand what one that gave up has not acknowledged to others: its connection is gone."""
        unacked = subscription.unacked
        self._let_leave(subscription)
        subscription.unacked = unacked
        self._give_others(subscription)

    def _let_leave(self, subscription: Subscription) -> None:
        self._leavers.remove(subscription)
        subscription.session.shared.remove(subscription)
        subscription.group = subscription.unacked = None

    def _give_others(self, subscription: Subscription) -> None:
        session = subscription.session
        unacked, subscription.unacked = subscription.unacked, None
        for number in unacked or ():
            assert session.window is not None
            self._desk.let_go(session, session.window, number)
        self._show_again(list((unacked or {}).values()))

    def _stop_handing(self, subscription: Subscription) -> None:
        subscription.state = OFFLINE
        self._members.remove(subscription)
        self._show_again(self._assigned.take(subscription))
        self._assigned.take_back(subscription)
        if not self._members:
            self._desk.broker.unpark(self.queue_ref, self)
            self._desk.broker.cancel_run(self)

    def settle(self, subscription: Subscription, window: InflightWindow) -> None:
        """Finish the messages that left a member's window: they are acknowledged."""
        unacked = subscription.unacked or {}
        done = list(takewhile(window.tail.__gt__, unacked))
        if done:
            self._finish_by(subscription.session.client_id, [unacked.pop(number) for number in done])
            if subscription.state == GONE and not unacked:
                self._let_leave(subscription)
        if subscription.floor_slot != NO_SLOT:
            is_empty = not window.count_of(subscription.source)
            floor = NOTHING_OWED if is_empty else window.lowest_offset(subscription.source, NOTHING_OWED)
            self._desk.places.set(subscription.floor_slot, floor)

    def own(self, queue_offset: int, client_id: bytes) -> None:
        """Hand a message to no member: this client has it already, at QoS 2, and is owed it."""
        self._owned[queue_offset] = client_id

    def _show_again(self, offsets: list[int]) -> None:
        if offsets:
            self._pop.nack_many(array("q", sorted(offsets)), len(offsets))

    def run_soon(self) -> None:
        """Run in the next turn: a member has room again."""
        if self._members:
            self._desk.broker.request_run(self)

    def reader_count(self) -> int:
        """Return how many members are connected."""
        return len(self._members)

    def members(self) -> list[bytes]:
        """Return the clients of those."""
        return [_client_of(member) for member in self._members]

    def on_ready(self, now_ms: int) -> bool:
        """Hand out what is there to the members that have room, in turn."""
        budget = TURN_BYTES_MAX
        while budget > 0:
            taken = self._hand_out(now_ms)
            if not taken:
                return False
            budget -= taken
        self.run_soon()
        return False

    def _hand_out(self, now_ms: int) -> int:
        """Give members with room what is theirs; return about how many bytes went out, 0 when nothing did."""
        strategy = self._sharing.strategy
        if strategy in HASHES:
            return self._hand_out_by_key(strategy, now_ms)
        if self._assigned.count:  # the strategy was another
            self._show_again(self._assigned.take_all())
        ready = self._pop.ready_count
        takers = self._find_takers(strategy, now_ms) if ready > 0 else []
        total = 0
        for number, (place, subscription) in enumerate(takers):
            left = len(takers) - number
            share = min(-(-ready // left), self._room_of(subscription, now_ms))
            taken = self._pop.take(self._batch, share, TAKE_BYTES_MAX, 0, now_ms) if share > 0 else 0
            if taken <= 0:
                break  # what is next is on its way
            if taken * left > ready:
                self._next = place + 1  # those after it got one less and come first next time
            self._note_again(taken)
            ready -= taken
            total += self._batch.record_end[taken - 1] - self._batch.record_start[0]
            self._deliver(subscription, now_ms)
        self._batch.clear()
        return total

    def _find_takers(self, strategy: str, now_ms: int) -> list[tuple[int, Subscription]]:
        """Return the members that have room, from the one whose turn it is on, each with its place."""
        placed = list(enumerate(self._members))
        first = self._next % max(len(placed), 1)
        in_turn = placed[:1] if strategy == STICKY else placed[first:] + placed[:first]
        return [(place, one) for place, one in in_turn if self._room_of(one, now_ms) > 0]

    def _hand_out_by_key(self, strategy: str, now_ms: int) -> int:
        """Take for the members that topic or publisher decide on, and send to those with room."""
        members = sorted(self._members, key=_client_of)
        batch = self._batch
        if not members:
            return 0
        for member in members:
            if self._room_of(member, now_ms) > 0:
                self._assigned.take_back(member)
        taken = self._pop.take(batch, min(self._assigned.room, BATCH_COUNT_MAX), TAKE_BYTES_MAX, 0, now_ms)
        self._note_again(taken)
        for i in range(max(taken, 0)):
            member = self._assigned.choose(members, find_key(batch, i, strategy))
            self._assigned.add(member, batch.queue_offset[i], now_ms)
        total = max(taken, 0)
        for member in members:
            offsets = self._assigned.peek(member, min(self._room_of(member, now_ms), BATCH_COUNT_MAX))
            found = self._pop.read_offsets(offsets, len(offsets), batch) if offsets else 0
            if found <= 0:
                continue
            self._assigned.drop_first(member, found, now_ms)
            kept = {batch.queue_offset[i] for i in range(batch.count)}
            gone = [offset for offset in offsets[:found] if offset not in kept]
            self._finish(gone)
            if batch.count:
                total += batch.record_end[batch.count - 1] - batch.record_start[0]
                self._deliver(member, now_ms)
        batch.clear()
        if self.is_full:
            self._pass_by(members, now_ms)
        return total

    @property
    def is_full(self) -> bool:
        """Whether nothing more is taken, because too much waits for members."""
        return self._assigned.room <= 0

    def _pass_by(self, members: list[Subscription], now_ms: int) -> None:
        """Give what is a stalled member's to members that have room, if any has."""
        if not any(self._room_of(one, now_ms) > 0 for one in members):
            return
        for member in members:
            if self._room_of(member, now_ms) <= 0 and self._assigned.is_stalled(member, now_ms):
                self._show_again(self._assigned.pass_by(member))
                self.run_soon()

    def _room_of(self, subscription: Subscription, now_ms: int) -> int:
        session = subscription.session
        if session.outlet is None or not session.outlet.is_writable:
            return 0
        room = session.room(self._desk.inflight_max) if subscription.qos else BATCH_COUNT_MAX
        return room if session.pace is None else min(room, session.pace.room(now_ms))

    def _deliver(self, subscription: Subscription, now_ms: int) -> None:
        """Send what was taken to a member."""
        batch = self._batch
        desk = self._desk
        self._leave_out(subscription, now_ms)
        sent: list[int] = []
        done: list[int] = []  # published at QoS 0: that they are sent so needs no note
        session = subscription.session
        window = session.open_window(desk.inflight_max)
        form = make_form(subscription, now_ms)
        data = desk.encoder.encode(batch, subscription.qos, window.next_id(), 0, 0, form)
        number = window.head
        if subscription.qos:
            window.push(batch, subscription.source, subscription.qos)
            subscription.unacked = subscription.unacked or {}
        exact = window.exact_between(number, window.head) if subscription.qos == _EXACT else []
        if exact:
            self._give_for_good(subscription, exact)
            offsets = [offset for _, offset in exact]
            if subscription.floor_slot == NO_SLOT:  # the end of its session is not written down
                self._end(offsets, HANDED_OVER, now_ms)
            else:
                self._finish_by(session.client_id, offsets)
        numbers = {each for each, _ in exact}
        for i in range(batch.count):
            if subscription.qos and _has_id(batch.flag[i]):
                assert subscription.unacked is not None
                if number not in numbers:
                    subscription.unacked[number] = batch.queue_offset[i]
                number += 1
            else:
                (sent if _has_id(batch.flag[i]) else done).append(batch.queue_offset[i])
        self._note_sent(session, now_ms)
        self._end(sent, SENT, now_ms)
        if done:
            self._finish(done)
        assert session.outlet is not None
        session.outlet.write(data)

    def _leave_out(self, subscription: Subscription, now_ms: int) -> None:
        """Take out of the batch what a member is not sent: it ends here."""
        batch, desk = self._batch, self._desk
        before = [batch.queue_offset[i] for i in range(batch.count)]
        desk.drop_expired(batch, now_ms)
        kept = {batch.queue_offset[i] for i in range(batch.count)}
        self._end([offset for offset in before if offset not in kept], EXPIRED, now_ms)
        if self._owned:
            keep(batch, lambda i: batch.queue_offset[i] not in self._owned)
            for offset in [offset for offset in before if offset in self._owned and offset in kept]:
                self._finish_by(self._owned.pop(offset), [offset])
        too_large = keep_wanted(batch, subscription)
        if too_large:
            desk.metrics.drop(TOO_LARGE, len(too_large))
            self._end(too_large, TOO_LARGE, now_ms)

    def _note_sent(self, session: Session, now_ms: int) -> None:
        """Count what the encoder has for a session."""
        desk = self._desk
        count, size = self._batch.count, desk.encoder.body_bytes
        if session.pace is not None:
            session.pace.note(count, size, now_ms)
        desk.metrics.messages_out += count
        desk.metrics.bytes_out += size

    def _note_again(self, taken: int) -> None:
        """Count what was taken, where members had it before: new messages and others are never taken together."""
        if taken > 0 and self._batch.attempt[0] > 1:
            self._desk.metrics.redelivered += taken
            self.redelivered += taken

    def _give_for_good(self, subscription: Subscription, exact: list[tuple[int, int]]) -> None:
        """Write down which messages at QoS 2 are a session's now, before they are done for the group."""
        slot = subscription.floor_slot
        if slot != NO_SLOT:
            self._desk.exact.note_sent(subscription.session, slot, exact)
            lowest = min(offset for _, offset in exact)
            self._desk.places.set(slot, min(self._desk.places.get(slot), lowest))

    def _end(self, offsets: list[int], reason: str, now_ms: int) -> None:
        """Finish messages that no member acknowledges, for a reason that outlives the process."""
        if not offsets:
            return
        offsets.sort()
        pops, reader = self._desk.broker.pop, (self.light_name, self.owner)
        if offsets[-1] - offsets[0] == len(offsets) - 1:
            pops.endings.note_run(reader, offsets[0], offsets[-1] + 1, reason, now_ms)
        else:
            pops.endings.note(reader, offsets, len(offsets), reason, now_ms)
        with pops.ending_as(reason, now_ms):
            self._finish(offsets)

    def _finish_by(self, client_id: bytes, offsets: list[int]) -> None:
        """Finish messages that are a client's for good: it acknowledged them, or its session is owed them at QoS 2."""
        code = self._desk.broker.pop.acknowledgers.code_of(client_id)
        self._pop.ack_by(array("q", offsets), len(offsets), code)

    def _finish(self, offsets: list[int]) -> None:
        self._pop.ack_many(array("q", offsets), len(offsets))


def _client_of(subscription: Subscription) -> bytes:
    return subscription.session.client_id


def _has_id(flag: int) -> bool:
    return flag & FLAG_MARK_MASK != FLAG_MARK or flag & FLAG_QOS_MASK > 0

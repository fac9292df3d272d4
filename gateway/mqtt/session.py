"""What outlives a connection: subscriptions with their places in the queues, and what is in flight."""

from __future__ import annotations

from typing import Protocol

from gateway.mqtt.catch_up import CatchUp
from gateway.mqtt.eras import Eras
from gateway.mqtt.inflight import InflightWindow
from gateway.mqtt.topic_aliases import TopicAliases
from gateway.net.protocol import Transport

RETAINED_SOURCE = 0  # the source of retained messages, which come from no queue

# Where a subscription is, seen from the feed of its filter.
OFFLINE = 0
ABREAST = 1  # read by the feed, which knows its position
AHEAD = 2  # the feed has yet to come to its position
BEHIND = 3  # reads by itself until it has caught up
GONE = 4  # given up; known only until nothing of it is in flight
SHARED = 5  # one of a group that is read for together
SETTLING = 6  # a replay at its end: nothing is sent until it goes on in another queue
NO_SLOT = -1
NOTHING_OWED = 2**47 - 1  # the place of a shared subscription with nothing on its way at QoS 2: the highest there is
NEVER = 0xFFFFFFFF  # the session expiry that is none


class ShareGroup(Protocol):
    """The members that share a filter."""

    @property
    def next_offset(self) -> int:
        """The first offset that no member was handed yet."""

    def add(self, subscription: Subscription) -> None:
        """Hand messages to a member, too."""

    def remove(self, subscription: Subscription) -> None:
        """Hand a member nothing more."""

    def retire(self, subscription: Subscription) -> None:
        """Hand a member that gives up its subscription nothing more; it finishes what it has."""

    def take_back(self, subscription: Subscription) -> None:
        """Hand what one that gave up has not finished to others: its connection is gone."""

    def settle(self, subscription: Subscription, window: InflightWindow) -> None:
        """Finish the messages that left a member's window."""

    def own(self, queue_offset: int, client_id: bytes) -> None:
        """Hand a message to no member: this client has it already, at QoS 2."""

    def run_soon(self) -> None:
        """A member has room again."""


class Pace(Protocol):
    """How fast a session may be sent messages."""

    @property
    def until_ms(self) -> int | None:
        """When what a pause held back may go on, None where there was none since `go_on`."""

    def go_on(self) -> None:
        """End a pause; the caller wakes what it held back."""

    def room(self, now_ms: int) -> int:
        """Return how many messages may be sent now, 0 while a pause lasts."""

    def room_bytes(self, now_ms: int) -> int:
        """Return how many bytes of bodies may be sent now, at least one."""

    def note(self, count: int, size: int, now_ms: int) -> None:
        """Take note of messages that were sent, and of the bytes of their bodies."""


class Subscription:
    """One filter of one session: a cursor on the light queue of the filter.

    `position` is the next offset to send, except while ABREAST. Messages below `dup_until` may have been sent by a
    process that is no more, at QoS 0 by a connection before. A durable subscription keeps two numbers: the first offset
    that is not acknowledged, and the first that was never sent. A third is for its retained messages: the end of its
    catch-up. Offsets in `done_before` were sent at QoS 2 by a process that is no more: they are in the window, or were
    completed.
    """

    __slots__ = (
        "abreast_at",
        "done_before",
        "dup_until",
        "eras",
        "first_offset",
        "floor_slot",
        "group",
        "identifier",
        "is_blocked",
        "is_queued",
        "is_replay",
        "is_solo",
        "options",
        "position",
        "qos",
        "queue_ref",
        "retained_slot",
        "sent_slot",
        "session",
        "source",
        "state",
        "topic_filter",
        "unacked",
    )

    def __init__(self, session: Session, topic_filter: bytes, qos: int, queue_ref: int, position: int) -> None:
        self.session = session
        self.topic_filter = topic_filter
        self.qos = qos
        self.queue_ref = queue_ref
        self.position = position
        self.first_offset = position  # what was there before it came; below 0 where that was not written down
        self.dup_until = 0
        self.eras: Eras = ()  # what it was before, the oldest first
        self.floor_slot = NO_SLOT
        self.sent_slot = NO_SLOT
        self.retained_slot = NO_SLOT
        self.state = OFFLINE
        self.abreast_at = 0  # where it stands among those abreast
        self.is_queued = False
        self.is_blocked = False  # it is among those of its session that wait
        self.is_replay = False  # it reads what is stored, in the parent topic's queue, through its filter
        self.is_solo = False  # it is written to in a form of its own, and reads by itself
        self.options = 0  # no local, retain as published: bits as in SUBSCRIBE; OF_MQTT_5 where it was written down
        self.identifier = 0
        self.group: ShareGroup | None = None  # of a shared subscription
        self.unacked: dict[int, int] | None = None  # of a shared one: number in the window -> offset
        self.done_before: dict[int, int] | None = None  # offset -> number in the window
        self.source = session.add_source(self)


class Ended:
    """A durable subscription that ended while messages were under way to its client: they are brought to their end.

    `is_kept` says that this is durable: a process that is killed before has the subscription again. `owed` are the
    queue offsets of those at QoS 1 that a process before left under way.

    Args:
        subscription: It is GONE, and has its slots until nothing is under way any more.
        catch_up: What it was owed of retained messages: what is under way of that, None where it was owed nothing.
    """

    __slots__ = ("catch_up", "is_kept", "owed", "subscription")

    def __init__(self, subscription: Subscription, catch_up: CatchUp | None) -> None:
        self.subscription = subscription
        self.catch_up = catch_up
        self.is_kept = False
        self.owed: list[int] = []

    @property
    def has_some(self) -> bool:
        """Whether messages of its queue are still under way."""
        sources = self.subscription.session.sources
        return sources[self.subscription.source] is self.subscription

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way any more."""
        return not self.has_some and (self.catch_up is None or self.catch_up.is_ended)


class Session:
    """One client's session. `outlet` is its connection's, None while there is none.

    `owner` is the user it belongs to, empty for anonymous clients, None where that was not written down. `taken` are
    the packet identifiers of messages at QoS 2 that came and were not released; `exact_number` is the session's in the
    journal of QoS 2, 0 for none. `ended` are subscriptions that ended while messages were under way, each under its
    first and its third slot. `level`, `receive_max`, `packet_bytes_max`, `aliases` and `pace` are those of its
    connection.
    """

    __slots__ = (
        "aliases",
        "blocked",
        "catch_ups",
        "client_id",
        "ended",
        "exact_number",
        "expiry_s",
        "free_sources",
        "is_persistent",
        "level",
        "next_look_ms",
        "outlet",
        "owner",
        "pace",
        "packet_bytes_max",
        "receive_max",
        "redelivered",
        "retained_inflight",
        "shared",
        "sources",
        "subscriptions",
        "taken",
        "window",
    )

    def __init__(self, client_id: bytes, owner: bytes | None, *, is_persistent: bool) -> None:
        self.client_id = client_id
        self.owner = owner
        self.is_persistent = is_persistent
        self.outlet: Transport | None = None
        self.subscriptions: dict[bytes, Subscription] = {}
        self.window: InflightWindow | None = None
        self.sources: list[Subscription | None] = [None]
        self.free_sources: tuple[int, ...] = ()
        self.blocked: list[Subscription] = []  # they wait for room in the window or for the outlet
        self.retained_inflight: dict[int, CatchUp] | None = None  # number in the window -> whose it is
        self.catch_ups: dict[bytes, CatchUp] | None = None  # of durable subscriptions, by filter
        self.ended: dict[int, Ended] | None = None
        self.taken: set[int] | None = None
        self.shared: list[Subscription] = []  # shared subscriptions that are read for, or GONE and not finished
        self.exact_number = 0
        self.redelivered = 0  # messages sent again, as unacknowledged ones of a connection before, since it was loaded
        self.aliases: TopicAliases | None = None  # where the client takes some
        self.pace: Pace | None = None  # where it may not be sent messages as fast as they come
        self.level = 0
        self.next_look_ms = 0  # when all that waits for it is looked at again, where that is limited
        self.expiry_s = NEVER if is_persistent else 0  # how long it outlives its connection
        self.receive_max = 0  # messages at QoS 1 and 2 that the client takes at once, 0 where it did not say
        self.packet_bytes_max = 0  # the largest packet that it takes, 0 where it did not say

    def floor_slot_of(self, source: int) -> int:
        """Return the slot of the subscription that a message in the window is of, negative where there is none."""
        subscription = self.sources[source]
        return NO_SLOT if subscription is None else subscription.floor_slot

    def add_source(self, subscription: Subscription) -> int:
        """Return a number for the subscription, by which the window knows it."""
        if self.free_sources:
            source, *rest = self.free_sources
            self.free_sources = tuple(rest)
            self.sources[source] = subscription
        else:
            source = len(self.sources)
            self.sources.append(subscription)
        if self.window is not None:
            self.window.add_source(source)
        return source

    def drop_subscription(self, subscription: Subscription) -> None:
        """Forget a subscription; what is in flight for it is still known until it is acknowledged."""
        del self.subscriptions[subscription.topic_filter]
        subscription.state = GONE
        self.free_source(subscription)

    def part(self, subscription: Subscription) -> Subscription:
        """Return one that is GONE and has what is in flight for a subscription, which has nothing in flight then."""
        gone = Subscription(self, subscription.topic_filter, subscription.qos, subscription.queue_ref, 0)
        gone.state, gone.is_replay, gone.first_offset = GONE, subscription.is_replay, subscription.first_offset
        gone.options, gone.identifier = subscription.options, subscription.identifier
        gone.source, subscription.source = subscription.source, gone.source
        self.sources[gone.source], self.sources[subscription.source] = gone, subscription
        return gone

    def keep_ended(self, ended: Ended) -> None:
        """Know a subscription that ended until nothing of it is under way."""
        self.ended = self.ended or {}
        self.ended[ended.subscription.floor_slot] = self.ended[ended.subscription.retained_slot] = ended

    def drop_ended(self, ended: Ended) -> None:
        """Know it no longer."""
        assert self.ended is not None
        del self.ended[ended.subscription.floor_slot], self.ended[ended.subscription.retained_slot]
        self.ended = self.ended or None

    def all_ended(self) -> list[Ended]:
        """Return each of them once."""
        return [one for slot, one in (self.ended or {}).items() if slot == one.subscription.floor_slot]

    def free_source(self, subscription: Subscription) -> None:
        """Give the number of a subscription that is GONE free, once nothing of it is in flight."""
        if self.window is None or not self.window.count_of(subscription.source):
            self.sources[subscription.source] = None
            self.free_sources += (subscription.source,)

    def keep_catch_up(self, catch_up: CatchUp) -> None:
        """Note what a durable subscription is owed of retained messages."""
        if self.catch_ups is None:
            self.catch_ups = {}
        self.catch_ups[catch_up.topic_filter] = catch_up

    def find_catch_up(self, topic_filter: bytes) -> CatchUp | None:
        """Return what the subscription to a filter is owed of retained messages, None where nothing."""
        return None if self.catch_ups is None else self.catch_ups.get(topic_filter)

    def drop_catch_up(self, catch_up: CatchUp) -> None:
        """Owe it no longer, and send nothing more of it."""
        catch_up.stop()
        if self.catch_ups is not None and self.catch_ups.get(catch_up.topic_filter) is catch_up:
            del self.catch_ups[catch_up.topic_filter]
            self.catch_ups = self.catch_ups or None

    def open_window(self, window_max: int) -> InflightWindow:
        """Return the window, made on first use."""
        if self.window is None:
            self.window = InflightWindow(min(window_max, self.receive_max or window_max))
            for source in range(len(self.sources)):
                self.window.add_source(source)
        return self.window

    def room(self, window_max: int) -> int:
        """Return how many more messages at QoS 1 and 2 may be sent."""
        return min(window_max, self.receive_max or window_max) if self.window is None else self.window.room()

    def set_receive_max(self, receive_max: int, window_max: int) -> None:
        """Go by what a new connection takes at once, 0 where it did not say."""
        self.receive_max = receive_max
        if self.window is not None:
            self.window.window_max = min(window_max, receive_max or window_max)

    def end(self) -> None:
        """Let go of those in flight, which refer back here: the collector of cycles is not to be waited for."""
        self.sources.clear()
        self.ended = None

    def rest(self) -> None:
        """Give back what a session without a connection does not need."""
        for subscription in self.blocked:
            subscription.is_blocked = False
        self.blocked.clear()
        self.aliases = None
        self.pace = None
        self.next_look_ms = 0
        if self.window is not None:
            self.window.shrink()

"""What the MQTT door has, for operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import cast

from core.lmq.queue_name import LIGHT_PREFIX, MQTT
from core.stage import Stage
from gateway.inventory import (
    ACKNOWLEDGED,
    AWAY,
    SENT,
    SUBSCRIBED_LATER,
    ConnectionEntry,
    FateEntry,
    GroupEntry,
    Inventory,
    PlaceEntry,
    QueueEntry,
    SessionEntry,
    SubscriptionEntry,
    describe_connection,
    name_some,
    take_each,
    text_of,
)
from gateway.mqtt.eras import FORGOTTEN, Era, find_era
from gateway.mqtt.packets import NO_LOCAL
from gateway.mqtt.services import MqttServices, OpenConnection
from gateway.mqtt.session import Session, Subscription
from gateway.mqtt.session_outlines import Outline
from gateway.mqtt.session_rows import OF_MQTT_5
from gateway.mqtt.shared_group import SharedGroup
from gateway.mqtt.topics import is_shared, split_share

DOOR = "mqtt"
DROPPED = "dropped as too many waited for it"
TOO_SLOW = "dropped as it read too slowly"
TOO_LARGE = "dropped as too large for it"
NO_MEMBER = "which member had a message that is done is not kept"
PREFIX = LIGHT_PREFIX + MQTT + b"%"
PLACES_MAX = 4_000  # sessions whose places are looked at every few seconds, a microsecond or two each
WAITING = "waiting"  # messages that a subscription is still to be sent
ALL = 1 << 62  # above any queue offset
LOOKS_A_STEP = 256  # queues of other doors that are passed over at once, about 0.2 us each


class MqttInventory(Inventory):
    """Connections, sessions, and the light queues of filters."""

    def __init__(self, services: MqttServices) -> None:
        self._services = services

    def open_connections(self) -> Iterable[OpenConnection]:
        """Return the open connections: first those with a session, then those that were not let in yet."""
        attached = cast("Iterable[OpenConnection]", self._services.attachments)
        return [*attached, *self._services.strangers]

    def connection_changes(self) -> object:
        """Return how many came, and how many are there: something else once one came or went."""
        counts = self._services.metrics
        return counts.connections_total, counts.connections, self._services.attachments.changes

    def describe_open(self, connection: OpenConnection) -> ConnectionEntry | None:
        """Return what one of these is; None where it is closed."""
        session = connection.session
        if session is None and connection not in self._services.strangers:
            return None
        client = b"" if session is None else session.client_id
        is_held = self._services.held.is_held_at(connection.transport)
        return describe_connection(connection.transport, connection.identity, text_of(client), is_held=is_held)

    def turn_out(self, conn_id: int, reason: str, now_ms: int) -> bool:
        """Close a connection; return whether it was there."""
        found = [
            one
            for one in [*cast("Iterable[OpenConnection]", self._services.attachments), *self._services.strangers]
            if one.transport.conn_id == conn_id
        ]
        for one in found:
            one.turn_out(now_ms, reason)
        return bool(found)

    def sessions(self) -> Iterator[SessionEntry | None]:
        """Give all sessions."""
        return map(describe_session, self._services.sessions.outlines())

    def find_session(self, client: str) -> SessionEntry | None:
        """Return the session of a client; None where there is none."""
        outline = self._services.sessions.outline(client.encode())
        return None if outline is None else describe_session(outline)

    def end_session(self, client: str, reason: str, now_ms: int) -> bool:
        """End a session, and the connection that it has; return whether it was there."""
        services = self._services
        client_id = client.encode()
        session = services.sessions.find(client_id)
        if session is None:
            return False
        if session.outlet is not None:
            self.turn_out(session.outlet.conn_id, reason, now_ms)
        left = services.sessions.find(client_id)
        if left is session and left.outlet is None:
            services.subscribing.end_session(left)
        return True

    def groups(self) -> Iterator[GroupEntry | None]:
        """Give the groups of shared subscriptions."""
        return map(self._describe_group, self._services.subscribing.sharing.groups())

    def repeating_groups(self) -> Iterator[GroupEntry | None]:
        """Give those of them whose members were given messages once more."""
        groups = self._services.subscribing.sharing.groups()
        return (self._describe_group(group) if group.redelivered else None for group in groups)

    def group_members(self, group: str) -> Iterator[str | None]:
        """Give the clients that are connected and subscribed to a filter of the group: once for each filter."""
        for shared in take_each(self._services.subscribing.sharing.groups()):
            yield None
            if text_of(shared.name) == group:
                yield from (text_of(client) for client in take_each(shared.members()))

    def _describe_group(self, group: SharedGroup) -> GroupEntry:
        broker = self._services.broker
        end = broker.max_offset(group.queue_ref)
        return GroupEntry(
            door=DOOR,
            group=text_of(group.name),
            topic=text_of(group.topic_filter),
            light_queue=text_of(group.light_name),
            next_offset=group.floor,
            lag=max(end - max(group.floor, broker.min_offset(group.queue_ref)), 0),
            members=group.reader_count(),
            redelivered=group.redelivered,
            came=end,
        )

    def queues(self) -> Iterator[QueueEntry | None]:
        """Give the light queues of filters, those too whose subscriptions are gone and whose messages are kept."""
        broker = self._services.broker
        for queue_ref in range(broker.queue_count()):
            key = broker.queue_key(queue_ref)
            if key.startswith(PREFIX):
                called = broker.long_names.find(key)
                yield QueueEntry(
                    name=text_of(key if called is None else called.name),
                    light_queue=text_of(key),
                    min_offset=broker.min_offset(queue_ref),
                    max_offset=broker.max_offset(queue_ref),
                    readers=broker.reader_count(queue_ref),
                )
            elif queue_ref % LOOKS_A_STEP == 0:
                yield None

    def subscriptions(self, client: str) -> Iterator[SubscriptionEntry] | None:
        """Give the subscriptions of a client's session; None where there is no such session."""
        client_id = client.encode()
        return None if self._services.sessions.outline(client_id) is None else self._describe_all(client_id)

    def _describe_all(self, client_id: bytes) -> Iterator[SubscriptionEntry]:
        with self._services.sessions.looking(client_id) as session:
            if session is not None:
                yield from map(self._describe_subscription, list(session.subscriptions.values()))

    def filters(self) -> Iterator[tuple[bytes, bytes] | None]:
        """Give client and filter of each subscription."""
        sessions = self._services.sessions
        for outline in sessions.outlines():
            yield None
            for topic_filter in sessions.filters_of(outline.client_id):
                yield outline.client_id, topic_filter

    def filter_lists(self) -> Iterator[tuple[bytes, list[bytes]]]:
        """Give each client that has a session, with the filters of its subscriptions as they came."""
        sessions = self._services.sessions
        return ((client_id, sessions.filters_of(client_id)) for client_id in sessions.clients())

    def describe_subscription(self, client_id: bytes, topic_filter: bytes) -> SubscriptionEntry | None:
        """Return what a subscription is; None where there is none."""
        with self._services.sessions.looking(client_id, topic_filter) as session:
            subscription = None if session is None else session.subscriptions.get(topic_filter)
            return None if subscription is None else self._describe_subscription(subscription)

    def tell_subscriptions(self, column: str, found: Sequence[tuple[bytes, bytes] | None]) -> list[int]:
        """Return `qos` or `waiting` of some subscriptions, 0 of one that is gone.

        That takes 1 us each, and some 5 where sessions are not loaded; those of one client are to stand together.
        """
        sessions, told = self._services.sessions, list[int]()
        tell = self._waiting_of if column == WAITING else _qos_of
        for client, some in groupby(found, lambda one: None if one is None else one[0]):
            filters = [b"" if one is None else one[1] for one in some]
            session = None if client is None else sessions.find_as_is(client)
            if session is None or isinstance(session, Session):
                told += _tell_each(filters, session, tell)
                continue
            with sessions.looking(session[0], *filters) as looked:
                told += _tell_each(filters, looked, tell)
        return told

    def _waiting_of(self, subscription: Subscription) -> int:
        return max(self._services.broker.max_offset(subscription.queue_ref) - self._next_of(subscription), 0)

    def backlogs(self) -> Iterator[tuple[str, int] | None]:
        """Give each client whose own subscriptions at QoS 1 or 2 messages wait for, connected or not, and how many."""
        end_of = self._services.broker.max_offset
        client, waiting = b"", 0
        for number, one in enumerate(self._services.sessions.behind(), 1):
            if one is None:
                yield (text_of(client), waiting) if waiting else None
                waiting = 0
                continue
            client, waiting = one.client_id, waiting + max(end_of(one.queue_ref) - one.position, 0)
            if number % LOOKS_A_STEP == 0:
                yield None

    def _next_of(self, subscription: Subscription) -> int:
        group = subscription.group
        if group is None and _is_missing(subscription):
            return self._services.broker.max_offset(subscription.queue_ref)
        return self._services.delivery.position_of(subscription) if group is None else group.next_offset

    def _describe_subscription(self, subscription: Subscription) -> SubscriptionEntry:
        services = self._services
        broker, group, window = services.broker, subscription.group, subscription.session.window
        if group is None:
            inflight = 0 if window is None else window.count_of(subscription.source)
        else:
            inflight = len(subscription.unacked or ())
        return SubscriptionEntry(
            topic_filter=text_of(subscription.topic_filter),
            qos=subscription.qos,
            light_queue=text_of(broker.queue_key(subscription.queue_ref)),
            next_offset=self._next_of(subscription),
            max_offset=broker.max_offset(subscription.queue_ref),
            inflight=inflight,
        )

    def places(self) -> Iterator[PlaceEntry | None]:
        """Give how far sessions and shared groups are, where there are not too many."""
        services = self._services
        broker = services.broker
        for queue_ref, group in [(group.queue_ref, group) for group in services.subscribing.sharing.groups()]:
            by = name_some(group.members())
            yield PlaceEntry(broker.queue_key(queue_ref), group.owner, group.next_offset, group.floor, by)
        if len(services.sessions) > PLACES_MAX:
            return
        for session in services.sessions:
            yield None
            window = session.window
            for one in list(session.subscriptions.values()):
                if one.group is None and not one.is_replay:
                    position = services.delivery.position_of(one)
                    floor = position if window is None else window.lowest_offset(one.source, position)
                    yield PlaceEntry(broker.queue_key(one.queue_ref), session.client_id, position, floor)

    def fates(self, light_queue: bytes, offset: int) -> Iterator[FateEntry | None]:
        """Give how far each session and each shared group is; those that subscribed later count as done with it."""
        services = self._services
        queue_ref = services.broker.find_queue(light_queue)
        if queue_ref < 0 or not light_queue.startswith(PREFIX):
            return
        joined: set[object] = set()  # groups that a member of now had joined when the message came
        owed: dict[bytes, bytes] = {}  # by group: the client that has it and has not acknowledged it
        for session in services.sessions:
            yield None
            owed.update((group, session.client_id) for group in _groups_owed(session, queue_ref, offset))
            for subscription in list(session.subscriptions.values()):
                if subscription.queue_ref != queue_ref or subscription.is_replay:
                    continue
                if subscription.group is None:
                    yield self._tell_session(session, subscription, light_queue, offset)
                elif 0 <= subscription.first_offset <= offset:
                    joined.add(subscription.group)
        for group in services.subscribing.sharing.groups_on(queue_ref):
            yield self._tell_group(group, offset, owed.get(group.name, b""), had_member=group in joined)

    def _tell_session(self, session: Session, subscription: Subscription, light_queue: bytes, offset: int) -> FateEntry:
        client = session.client_id
        stage = _stage_of(session, subscription, self._services.delivery.position_of(subscription), offset)
        was = find_era(subscription.eras, offset) or _now(subscription)
        done_as = ACKNOWLEDGED if was.qos else SENT
        if offset < subscription.first_offset:
            done_as = SUBSCRIBED_LATER
        elif stage is Stage.WAITS and _is_missing(subscription):
            stage, done_as = Stage.DONE, AWAY
        return FateEntry(
            "session",
            text_of(client),
            stage,
            f"filter {text_of(subscription.topic_filter)} at QoS {was.qos}",
            done_as=done_as,
            ends=() if done_as == SUBSCRIBED_LATER else ((light_queue, client, offset), (light_queue, b"", offset)),
            is_lasting=True,
            may_be=self._other_ends(session, subscription, was, offset),
            or_else=_never_known(subscription, was, offset),
            done_at_0="" if done_as in {AWAY, SUBSCRIBED_LATER} else SENT,
            skips_own=was.rules & NO_LOCAL > 0,
        )

    def _tell_group(self, group: SharedGroup, offset: int, client_id: bytes, *, had_member: bool) -> FateEntry:
        stage, owner = Stage.TAKEN if client_id else group.stage(offset), group.owner
        by = client_id or group.find_holder(offset)
        if stage is Stage.DONE:
            by = self._services.broker.pop.acknowledgers.find((group.light_name, owner), offset)
        is_fresh = offset >= group.fresh_from
        came_later = not is_fresh and group.is_new
        return FateEntry(
            "group",
            text_of(owner),
            stage,
            NO_MEMBER if stage is Stage.DONE and not came_later and not by else "",
            holder=text_of(by) if stage in {Stage.TAKEN, Stage.DONE} else "",
            done_as=SUBSCRIBED_LATER if came_later else ACKNOWLEDGED,
            ends=((group.light_name, owner, offset),),
            or_else=() if is_fresh or had_member or came_later else (SUBSCRIBED_LATER,),
            is_told=self._services.broker.pop.tells_endings(group.light_name, owner, is_of_subscribers=True),
            done_at_0="" if came_later else SENT,
            is_fresh=is_fresh,
        )

    def _other_ends(self, session: Session, subscription: Subscription, was: Era, offset: int) -> tuple[str, ...]:
        """Return how else a message may have ended for a subscription whose time was not over, by the limits of now."""
        may_be_5 = subscription.first_offset < 0 or subscription.options & OF_MQTT_5 > 0
        is_unheard = may_be_5 and not session.level  # since the start
        too_large = (TOO_LARGE,) if session.packet_bytes_max or is_unheard else ()
        if not was.qos:
            return (TOO_SLOW, *too_large)
        limit = self._services.delivery.queued.limits.of(session)
        behind = self._services.broker.max_offset(subscription.queue_ref) - offset - 1
        has_others = len(session.subscriptions) > 1  # by which messages wait that count, too
        is_limited = limit.size or (limit.messages and (has_others or behind >= limit.messages))
        return (*((DROPPED,) if is_limited else ()), *too_large)


def _groups_owed(session: Session, queue_ref: int, offset: int) -> Iterator[bytes]:
    """Give the groups of which a session has a message and has not acknowledged it."""
    window = session.window
    if window is None or window.tail == window.head:
        return
    for one in session.sources:
        is_owed = one is not None and one.queue_ref == queue_ref and window.has_unacked(one.source, offset)
        if is_owed and one is not None and is_shared(one.topic_filter):
            yield split_share(one.topic_filter)[0]


def _tell_each(
    filters: Sequence[bytes], session: Session | None, tell: Callable[[Subscription], int]
) -> Iterator[int]:  # fmt: skip
    """Give what each subscription of a session has, 0 where there is none."""
    held = {} if session is None else session.subscriptions
    for topic_filter in filters:
        subscription = held.get(topic_filter)
        yield 0 if subscription is None else tell(subscription)


def _qos_of(subscription: Subscription) -> int:
    return subscription.qos


def _is_missing(subscription: Subscription) -> bool:
    """Return whether a subscription gets nothing of what comes now, also not later: at QoS 0, and not connected."""
    return not subscription.qos and not subscription.is_replay and subscription.session.outlet is None


def _now(subscription: Subscription) -> Era:
    """Return what a subscription is."""
    return Era(ALL, subscription.dup_until, subscription.qos | subscription.options & NO_LOCAL)


def _never_known(subscription: Subscription, was: Era, offset: int) -> tuple[str, ...]:
    """Return in which ways a message may have ended for a subscription of which nothing is ever kept."""
    later = (SUBSCRIBED_LATER,) if subscription.first_offset < 0 else ()
    if was.rules & FORGOTTEN:
        return (ACKNOWLEDGED, AWAY, *later)
    return (AWAY, *later) if not was.qos and offset < was.missed_until else later


def _stage_of(session: Session, subscription: Subscription, position: int, offset: int) -> Stage:
    if offset >= position and offset not in (subscription.done_before or ()):
        return Stage.WAITS
    window = session.window
    before = [one.subscription for one in session.all_ended() if one.has_some]  # as it went to QoS 0
    sources = [one.source for one in before if one.topic_filter == subscription.topic_filter]
    if window is not None and any(window.has_unacked(source, offset) for source in [subscription.source, *sources]):
        return Stage.TAKEN
    return Stage.DONE


def describe_session(session: Outline) -> SessionEntry:
    """Return the entry of a session."""
    return SessionEntry(
        client=text_of(session.client_id),
        user=None if session.owner is None else text_of(session.owner),
        conn_id=0 if session.outlet is None else session.outlet.conn_id,
        is_connected=session.outlet is not None,
        is_persistent=session.is_persistent,
        subscriptions=session.subscription_count,
        inflight=session.inflight_count,
        redelivered=session.redelivered,
    )

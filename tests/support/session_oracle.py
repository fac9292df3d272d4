"""What MQTT promises to sessions at QoS 0 and 1, by a plain model: subscriptions, groups and what they are owed.

The model knows what the gateway was told and when, and looks at each packet that it sends. What is not certain, such as
what a kill does to acknowledgements that overtook others, is allowed in either way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LARGE_BYTES = 600  # of bodies that are too large for clients that take SMALL_PACKETS at most
SMALL_PACKETS = 500

WAITING, SENT, RECEIVED, DONE = range(4)


@dataclass(eq=False)
class Message:
    """One message as it was published; `sender` is the client identifier of its publisher."""

    topic: bytes
    body: bytes
    qos: int
    is_retained: bool = False
    sender: bytes = b""
    stored_ms: int = 0
    expiry_s: int | None = None
    said: tuple = ()  # its other properties
    is_certain: bool = True  # its publisher is answered: it may not be lost

    @property
    def is_large(self):
        return len(self.body) >= LARGE_BYTES

    def is_expired(self, now_ms):
        return self.expiry_s is not None and now_ms >= self.stored_ms + 1_000 * self.expiry_s


@dataclass(eq=False)
class Copy:
    """One message for one subscription or group.

    `may_come` says that it need not come, or that it may come again.
    """

    message: Message
    is_catch_up: bool = False  # it is a retained message that a SUBSCRIBE asked for
    state: int = WAITING
    may_come: bool = False
    may_repeat: bool = False  # it may come again if its subscription is changed to QoS 0
    was_sent: bool = False
    is_adrift: bool = False  # it was under way when the process was killed, and comes with another packet identifier
    qos: int = 0  # that it was sent at
    packet_id: int = 0
    sent_number: int = 0  # in the order in which its client was sent messages for the first time
    holder: object = None  # the subscription whose client has it


def matches(topic_filter, topic):
    """Return whether a filter matches a topic that does not begin with `$`."""
    pattern, levels = topic_filter.split(b"/"), topic.split(b"/")
    if pattern[-1] == b"#":
        return _match_all(pattern[:-1], levels)
    return len(pattern) == len(levels) and _match_all(pattern, levels)


def _match_all(pattern, levels):
    return len(levels) >= len(pattern) and all(
        one in {b"+", level} for one, level in zip(pattern, levels, strict=False)
    )


@dataclass(eq=False)
class Group:
    """A shared subscription: what waits for its members, and who they are."""

    topic_filter: bytes
    copies: list = field(default_factory=list)
    members: list = field(default_factory=list)


@dataclass(eq=False)
class Subscription:
    """One filter of one session."""

    session: Session
    topic_filter: bytes
    qos: int = 0
    identifier: int = 0
    is_no_local: bool = False
    keeps_retain: bool = False
    group: Group | None = None
    copies: list = field(default_factory=list)
    is_ended: bool = False
    held: list = field(default_factory=list)  # copies at QoS 1 that were under way when it ended

    @property
    def plain(self):
        return self.topic_filter.split(b"/", 2)[2] if self.topic_filter.startswith(b"$share/") else self.topic_filter

    def hides(self, message):
        return self.is_no_local and message.sender == self.session.client_id

    def all_copies(self):
        return self.group.copies if self.group else self.copies

    def unacknowledged(self):
        return [one for one in self.all_copies() if one.holder is self and one.state in {SENT, RECEIVED}]

    def give_back(self):
        """Let others of the group have what is not acknowledged; what is at QoS 2 stays with this session."""
        for copy in self.group.copies if self.group else ():
            if copy.holder is self and copy.state != WAITING:
                if copy.state == SENT and copy.qos == 1:
                    copy.state, copy.holder, copy.may_come = WAITING, None, False
                elif copy.state == DONE and copy.may_come and copy.qos == 1:
                    copy.state, copy.holder = WAITING, None


@dataclass(eq=False)
class Session:
    """One client's session, as the client may believe it is."""

    client_id: bytes
    expiry_s: int = 0
    is_durable: bool = False  # it had an expiry when it began
    subscriptions: dict = field(default_factory=dict)
    by_identifier: dict = field(default_factory=dict)
    ended: list = field(default_factory=list)  # subscriptions of which something is under way
    idle_since_ms: int | None = None
    is_idle_by_kill: bool = False  # so that its time begins anew with each start

    def is_over(self, now_ms, never):
        return (
            self.idle_since_ms is not None
            and self.expiry_s != never
            and self.idle_since_ms + 1_000 * self.expiry_s <= now_ms
        )

    def in_flight(self):
        """Return what is under way, in no order."""
        everything = [*self.subscriptions.values(), *self.ended]
        return [copy for one in everything for copy in one.unacknowledged()]


class Oracle:
    """All sessions, groups and retained messages."""

    def __init__(self, never):
        self.never = never
        self.sessions = {}
        self.groups = {}
        self.retained = {}  # message by topic
        self.published = []
        self.online = set()  # client identifiers

    # Subscriptions

    def subscribe(self, session, topic_filter, qos, options, identifier, handling, now_ms):
        """Note a SUBSCRIBE that was granted."""
        found = session.subscriptions.get(topic_filter)
        is_new = found is None
        if is_new:
            found = session.subscriptions[topic_filter] = Subscription(session, topic_filter)
            if topic_filter.startswith(b"$share/"):
                found.group = self.groups.setdefault(topic_filter, Group(topic_filter))
                found.group.members.append(found)
        if qos == 0 and found.qos and not is_new:
            for copy in found.copies:
                copy.may_come |= copy.is_catch_up or copy.state != WAITING
        if qos and not found.qos:
            for copy in found.copies:
                copy.may_come |= copy.is_catch_up and copy.state == WAITING  # it is not owed beyond the connection
        found.qos, found.identifier = qos, identifier
        found.is_no_local, found.keeps_retain = options
        for copy in found.copies:
            copy.may_come |= found.hides(copy.message) and copy.state == WAITING  # it may be read before that changes
        session.by_identifier[identifier] = found
        wants = not found.group and (handling == 0 or (handling == 1 and is_new))
        if wants:
            self._owe_retained(found, now_ms)
        return found

    def _owe_retained(self, subscription, now_ms):
        for copy in subscription.copies:
            if copy.is_catch_up and copy.state == WAITING:
                copy.may_come = True
        for topic, message in self.retained.items():
            if matches(subscription.plain, topic) and not message.is_expired(now_ms):
                subscription.copies.append(Copy(message, is_catch_up=True, qos=min(message.qos, subscription.qos)))

    def unsubscribe(self, session, topic_filter):
        """Note that a subscription was ended."""
        found = session.subscriptions.pop(topic_filter)
        found.is_ended = True
        for copy in found.copies:
            if copy.state == WAITING or copy.is_adrift:
                copy.may_come = copy.is_adrift and (copy.qos == 2 or copy.is_catch_up)  # else it was not sent since
                copy.state = DONE
        found.held = [one for one in found.unacknowledged() if one.qos == 1]
        self._leave_group(found)
        session.ended.append(found)

    def _leave_group(self, subscription):
        """Note that a group has one member less; who leaves finishes what it has, also if the group is no more."""
        group = subscription.group
        if group:
            group.members.remove(subscription)
            if not group.members:
                del self.groups[subscription.topic_filter]
                for session in self.sessions.values():
                    for one in session.ended:
                        self._part(one, group)
                self._part(subscription, group)

    @staticmethod
    def _part(subscription, group):
        if subscription.group is group:
            subscription.copies = subscription.unacknowledged()
            subscription.group = None

    def end_session(self, session):
        """Note that a session is no more."""
        del self.sessions[session.client_id]
        for one in [*session.subscriptions.values(), *session.ended]:
            if one.group:
                one.give_back()
        for one in session.subscriptions.values():
            one.is_ended = True
            self._leave_group(one)

    def pause(self, session, now_ms):
        """Note that a session has no connection any more."""
        session.idle_since_ms, session.is_idle_by_kill = now_ms, False
        for one in [*session.subscriptions.values(), *session.ended]:
            if one.group:
                one.give_back()
            elif not one.qos:
                for copy in one.copies:
                    copy.may_come |= copy.is_catch_up or copy.state != WAITING
                    if copy.state == WAITING:
                        copy.state = DONE

    # Messages

    def publish(self, message, now_ms):
        """Note that a message was published, and to which subscriptions it is owed."""
        message.stored_ms = now_ms
        self.published.append(message)
        for session in self.sessions.values():
            for one in session.subscriptions.values():
                if one.group is None and matches(one.plain, message.topic):
                    self._owe(one, message)
        for group in self.groups.values():
            if matches(group.members[0].plain, message.topic):
                copy = Copy(message, may_come=not message.is_certain)
                has_member = any(one.session.client_id in self.online for one in group.members)
                copy.may_come |= not has_member and not message.qos
                group.copies.append(copy)
        if message.is_retained:
            self._retain(message)

    def _owe(self, subscription, message):
        is_online = subscription.session.client_id in self.online
        if not (is_online or subscription.qos):
            return
        hides = subscription.hides(message)  # it may change that before the message is read for it
        subscription.copies.append(Copy(message, may_come=hides or not message.is_certain))

    def _retain(self, message):
        self.retained.pop(message.topic, None)
        if message.body:
            self.retained[message.topic] = message
        for session in self.sessions.values():
            for one in session.subscriptions.values():
                for copy in one.copies:
                    if copy.is_catch_up and copy.state == WAITING and copy.message.topic == message.topic:
                        copy.may_come = True

    def kill(self, now_ms):
        """Note that the process was killed: acknowledgements that overtook older messages may be forgotten."""
        for session in [*self.sessions.values()]:
            for one in [one for one in session.ended if one.unacknowledged()]:
                for copy in one.held:
                    copy.may_come |= copy.state == DONE
                for copy in one.unacknowledged():
                    copy.may_come |= one.group is not None and copy.qos == 1  # others get it
            if not session.expiry_s or not session.is_durable:
                self.end_session(session)
                continue
            if session.client_id in self.online or session.is_idle_by_kill:
                self.pause(session, now_ms)
                session.is_idle_by_kill = True
            for copy in session.in_flight():
                copy.is_adrift = True
            for one in session.subscriptions.values():
                self._count_once(one)
        for group in self.groups.values():
            for copy in group.copies:
                if copy.qos == 1 and (copy.state == SENT or (copy.state == DONE and copy.may_come)):
                    copy.state, copy.holder = WAITING, None
        self.online.clear()

    @staticmethod
    def _count_once(subscription):
        """Let a retained message that is under way for several SUBSCRIBEs at QoS 1 come once.

        What was sent behind something that is still under way is read again, and left out if the QoS stays.
        """
        seen = {one.message for one in subscription.unacknowledged() if one.is_catch_up and one.qos == 2}
        if subscription.unacknowledged():  # what was too large for the client beside them may be read again
            for copy in subscription.copies:
                if copy.state == DONE and copy.message.is_large and not (copy.was_sent and copy.qos == 2):
                    copy.state, copy.may_come = WAITING, True
        is_behind = False
        for copy in subscription.copies:
            is_behind |= copy.state in {SENT, RECEIVED}
            copy.may_repeat |= is_behind and copy.state == DONE
            if copy.is_catch_up and copy.state == SENT and copy.qos == 1:
                copy.may_come |= copy.message in seen
                seen.add(copy.message)

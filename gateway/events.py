"""What operators want to know of: which clients came in, and which users made, changed or removed what.

All doors tell their events here, and listeners get them; as long as there are none, telling costs a look at an empty
tuple. Nothing of the data path is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

from gateway.churn import Churn


class Kind(StrEnum):
    """What happened; by RabbitMQ's names (`rabbitmq_event_exchange`) where it has the event."""

    LOGIN = "user.authentication.success"
    LOGIN_REFUSED = "user.authentication.failure"
    DENIED = "access.denied"
    ADDRESS_REFUSED = "address.refused"
    CONNECTION_CREATED = "connection.created"
    CONNECTION_CLOSED = "connection.closed"
    QUEUE_CREATED = "queue.created"
    QUEUE_DELETED = "queue.deleted"
    QUEUE_PURGED = "queue.purged"
    EXCHANGE_CREATED = "exchange.created"
    EXCHANGE_DELETED = "exchange.deleted"
    BINDING_CREATED = "binding.created"
    BINDING_DELETED = "binding.deleted"
    VHOST_CREATED = "vhost.created"
    VHOST_DELETED = "vhost.deleted"
    VHOST_LIMITS_SET = "vhost.limits.set"
    VHOST_LIMITS_CLEARED = "vhost.limits.cleared"
    USER_CREATED = "user.created"
    USER_DELETED = "user.deleted"
    USER_PASSWORD_CHANGED = "user.password.changed"  # noqa: S105 - the name of an event
    USER_TAGS_SET = "user.tags.set"
    USER_LIMITS_SET = "user.limits.set"
    USER_LIMITS_CLEARED = "user.limits.cleared"
    PERMISSION_CREATED = "permission.created"
    PERMISSION_DELETED = "permission.deleted"
    TOPIC_PERMISSION_CREATED = "topic.permission.created"
    TOPIC_PERMISSION_DELETED = "topic.permission.deleted"
    POLICY_SET = "policy.set"
    POLICY_CLEARED = "policy.cleared"
    DEFINITIONS_IMPORTED = "definitions.imported"
    CONNECTION_TURNED_OUT = "connection.turned.out"
    SESSION_ENDED = "session.ended"
    GROUP_RESET = "group.reset"
    MESSAGES_MOVED = "messages.moved"
    TOPIC_CREATED = "topic.created"
    TOPIC_CHANGED = "topic.changed"
    TOPIC_DELETED = "topic.deleted"
    GROUP_SET = "group.set"
    GROUP_DELETED = "group.deleted"
    USER_DISABLED = "user.disabled"
    USER_ENABLED = "user.enabled"
    RULE_SET = "rule.set"
    RULE_DELETED = "rule.deleted"
    RULE_MOVED = "rule.moved"
    TOKEN_CREATED = "token.created"  # noqa: S105 - the name of an event
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 - the name of an event
    SETTINGS_CHANGED = "settings.changed"
    CHANGED = "admin.changed"
    SUBSCRIBED = "session.subscribed"
    UNSUBSCRIBED = "session.unsubscribed"
    SESSION_CREATED = "session.created"
    SESSION_RESUMED = "session.resumed"
    SESSION_TAKEN_OVER = "session.taken.over"
    SESSION_EXPIRED = "session.expired"
    MESSAGE_DROPPED = "message.dropped"


KINDS = tuple(kind.value for kind in Kind)
QUIET_KINDS = (  # that come with each connection, subscription or loss
    Kind.CONNECTION_CREATED.value,
    Kind.CONNECTION_CLOSED.value,
    Kind.SUBSCRIBED.value,
    Kind.UNSUBSCRIBED.value,
    Kind.SESSION_CREATED.value,
    Kind.SESSION_RESUMED.value,
    Kind.SESSION_TAKEN_OVER.value,
    Kind.SESSION_EXPIRED.value,
    Kind.MESSAGE_DROPPED.value,
)


class Event(NamedTuple):
    """One event: its kind, the user or connection that caused it, and the thing it happened to."""

    kind: Kind
    actor: Actor
    fields: Mapping[str, object]


Listener = Callable[[Event], None]
"""Called on the loop, at once; it returns quickly, and raises nothing."""


class Events:
    """Hands on what is told to all that listen; what comes most often is counted also where nobody does."""

    __slots__ = ("_listeners", "churn", "told")

    def __init__(self) -> None:
        self.churn = Churn()
        self.told: dict[Kind, int] = {}  # how often each was told; some are only where somebody listens
        self._listeners: tuple[Listener, ...] = ()

    @property
    def is_heard(self) -> bool:
        """Whether a listener is there; else what is dear to be told may be left out."""
        return bool(self._listeners)

    def listen(self, listener: Listener) -> None:
        """Tell `listener`, too, from now on."""
        self._listeners = (*self._listeners, listener)

    def ignore(self, listener: Listener) -> None:
        """Tell `listener` no more; harmless where it was told nothing."""
        self._listeners = tuple(one for one in self._listeners if one != listener)

    def tell(self, kind: Kind, actor: Actor, **fields: object) -> None:
        """Tell all that listen."""
        self.told[kind] = self.told.get(kind, 0) + 1
        for listener in self._listeners:
            listener(Event(kind, actor, fields))


class Actor:
    """What makes things happen: a connection with its user, or a caller of the admin API.

    Args:
        events: Where it is told.
        door: The name of the door.
        conn_id: The connection as the log numbers it, 0: of the admin API.
        peer: HOST:PORT.
        user: Empty where nobody logged in.
    """

    __slots__ = ("_events", "conn_id", "door", "peer", "user")

    def __init__(self, events: Events, door: str, conn_id: int, peer: str, user: str = "") -> None:
        self._events = events
        self.door = door
        self.conn_id = conn_id
        self.peer = peer
        self.user = user

    def note_login(self, client: str, user: str, outcome: str) -> None:
        """Count a login of this one, with the names that it gave."""
        self._events.churn.note_login(self.door, self.peer, client, user, outcome)

    def tell(self, kind: Kind, **fields: object) -> None:
        """Tell what this one did."""
        self._events.tell(kind, self, **fields)

"""What a door has, for operators: its connections, sessions and queues with their figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from core.long_list import make_long_list
from core.stage import Stage
from gateway.address import format_address
from gateway.auth.credentials import Identity
from gateway.net.protocol import Transport

Thing = TypeVar("Thing")
NAMED_MAX = 8  # clients of a group, as consumers of a queue


class ConnectionEntry(NamedTuple):
    """One open connection."""

    conn_id: int  # its number, as the log has it
    peer: str  # address and port
    user: str | None  # None: nobody has come in yet; empty: an anonymous client
    client: str  # what the client calls itself, empty where it has not said
    since_ms: int
    bytes_in: int  # read from the socket
    bytes_out: int  # written to it
    local: str = ""  # address and port that it came to
    vhost: str = ""  # where the protocol has such
    channels: int = 0
    is_held: bool = False  # it publishes, and there is no room on the disk or in memory

    @property
    def name(self) -> str:
        """What RabbitMQ calls it."""
        return _name_of(self.peer, self.local)


class ChannelEntry(NamedTuple):
    """One channel of a connection."""

    connection: ConnectionEntry
    number: int
    consumers: int
    unacked: int  # messages sent and not acknowledged
    prefetch: int  # of each consumer to come, 0 for no limit
    prefetch_global: int  # of all its consumers together
    is_confirming: bool
    is_transactional: bool
    unconfirmed: int  # publishes that are not answered yet

    @property
    def name(self) -> str:
        """What RabbitMQ calls it."""
        return name_channel(self.connection.name, self.number)


class ConsumerEntry(NamedTuple):
    """One consumer of a channel."""

    channel: ChannelEntry
    tag: str
    queue: str
    is_acknowledging: bool
    is_exclusive: bool
    is_active: bool  # False for one that waits for another's end
    prefetch: int
    timeout_ms: int  # to acknowledge a delivery; 0 for no end


class SessionEntry(NamedTuple):
    """What outlives a connection."""

    client: str
    user: str | None  # whose it is; None where that was not written down
    conn_id: int  # of its connection; 0 while it has none, and of a bridge's, which has no socket here
    is_connected: bool
    is_persistent: bool
    subscriptions: int
    inflight: int  # messages sent and not acknowledged
    redelivered: int = 0  # messages sent once more, since the gateway loaded it


class GroupEntry(NamedTuple):
    """How far a group is on one queue."""

    door: str
    group: str
    topic: str  # the queue, as the door's clients call it
    light_queue: str
    next_offset: int  # the first message that it has not done
    lag: int  # messages from there on
    members: int  # clients of the group that are connected
    redelivered: int = 0  # messages that it was given once more, since the start
    came: int = 0  # messages that ever came into the queue


class QueueEntry(NamedTuple):
    """One queue."""

    name: str  # as the door's clients call it
    light_queue: str  # as the log calls it
    min_offset: int  # first message that is kept
    max_offset: int  # next one to be given
    readers: int  # consumers, subscriptions or pulls that wait
    ready: int | None = None  # messages that could be taken now, None where a queue does not keep count
    unacked: int | None = None  # messages that consumers have
    vhost: str = ""  # where it is, empty where a door has none
    first_waiting: tuple[tuple[int, int], ...] = ()  # light queues that hold something, and the first offset not done
    again: int = 0  # times that messages were given once more, since the start
    came: int = 0  # messages that ever came, of AMQP queues, with all priorities


class SubscriptionEntry(NamedTuple):
    """One filter of a session, and what it is owed there."""

    topic_filter: str
    qos: int
    light_queue: str
    next_offset: int  # to be sent next; of a shared one what its group has not handed out
    max_offset: int  # next one to be given
    inflight: int  # sent and not acknowledged


ACKNOWLEDGED = "acknowledged"
SENT = "sent"  # at QoS 0
AWAY = "not sent as it was not connected"  # at QoS 0
SUBSCRIBED_LATER = "subscribed later"  # how a message is done of which a reader began behind it


class FateEntry(NamedTuple):
    """How far one reader of a light queue is with one message in it."""

    kind: str  # session, queue or group
    reader: str  # as the door calls it
    stage: Stage
    note: str = ""  # what else is to be known
    holder: str = ""  # what has it now, where that is known
    done_as: str = ACKNOWLEDGED  # what done is where it did not end in another way
    ends: tuple[tuple[bytes, bytes, int], ...] = ()  # light queue, reader and offset under which endings are noted
    letters: tuple[bytes, ...] = ()  # light queues that its dead letter may be in
    died_in: str = ""  # the AMQP queue that its letter names: other queues that had the message have letters of it, too
    may_be: tuple[str, ...] = ()  # other endings that are possible, where the real one is not kept
    or_else: tuple[str, ...] = ()  # endings that are possible of any message, as they are kept of none
    ttl_ms: int = -1  # how long the reader keeps messages at most, -1 for no limit
    is_told: bool = False  # the endings of all messages of the reader are known, also from before the start
    done_at_0: str = ""  # what done is of a message that was published at QoS 0, where that differs
    skips_own: bool = False  # an MQTT client that is not sent what it published itself
    is_fresh: bool = False  # when the reader's place was opened, since the start, it had not been taken
    is_lasting: bool = (
        False  # its endings are those that outlive the process, and are kept of what was stored since then
    )
    done_queue: bytes = b""  # of a half message: the queue whose records say how transactions ended
    first_place: int = 0  # where in the log the reader began: what is before was never this one's


class PlaceEntry(NamedTuple):
    """How far a reader of a light queue is that is no AMQP queue."""

    light_queue: bytes
    reader: bytes
    next_offset: int  # was never taken
    floor: int  # all before it are done
    by: str = ""  # members of a group, the first of many


class Inventory(ABC):
    """What a door has now.

    Each iterator is made for one walk, which may go on for many turns of the loop: what comes or goes meanwhile may be
    in it or not. It gives one thing a step, or None for a step that found nothing. A step costs some
    microseconds; the loop is to have a turn between some hundreds of them.
    """

    def connections(self) -> Iterator[ConnectionEntry | None]:
        """Give the open connections."""
        return map(self.describe_open, take_each(self.open_connections()))

    @abstractmethod
    def open_connections(self) -> Iterable[Any]:
        """Return the open connections, as the door has them: each the same object for as long as it is open."""

    @abstractmethod
    def connection_changes(self) -> object:
        """Return something else once one of these came or went."""

    @abstractmethod
    def describe_open(self, connection: Any) -> ConnectionEntry | None:  # noqa: ANN401 - the door's own kind
        """Return what one of these is; None where it is closed, or not to be shown."""

    def channels(self) -> Iterator[ChannelEntry | None]:
        """Give the channels; none where the protocol has none."""
        return iter(())

    def consumers(self) -> Iterator[ConsumerEntry | None]:
        """Give the consumers of channels."""
        return iter(())

    def place_of(self, connection: Any) -> tuple[str | None, str]:  # noqa: ANN401 - the door's own kind
        """Return the user and the virtual host of an open connection, as its entry has them, at little cost."""
        return None if connection.identity is None else connection.identity.user, ""

    def named(self, name: str) -> Iterator[Any | None]:
        """Give the open connections of a name, RabbitMQ's or their number in the log; None for a look in vain."""
        for one in take_each(self.open_connections()):
            transport = one.transport
            is_near = name.startswith(transport.peer) or name == str(transport.conn_id)  # cheap: few are told of
            entry = self.describe_open(one) if is_near else None
            yield one if entry is not None and name in {entry.name, str(entry.conn_id)} else None

    @abstractmethod
    def turn_out(self, conn_id: int, reason: str, now_ms: int) -> bool:
        """Close a connection, for a reason that is told where the protocol can; return whether it was there."""

    @abstractmethod
    def sessions(self) -> Iterator[SessionEntry | None]:
        """Give the sessions; none where the protocol has none beside its connections."""

    def groups(self) -> Iterator[GroupEntry | None]:
        """Give the groups, each with the queues on which it has a place."""
        return iter(())

    def repeating_groups(self) -> Iterator[GroupEntry | None]:
        """Give those of them that were given messages once more since the start."""
        return iter(())

    def group_members(self, group: str) -> Iterator[str | None]:
        """Give the clients of a group that are connected, some twice; None for a look that found none."""
        del group
        return iter(())

    @abstractmethod
    def queues(self) -> Iterator[QueueEntry | None]:
        """Give the queues."""

    def find_session(self, client: str) -> SessionEntry | None:
        """Return the session of a client; None where the door has no such session."""
        del client
        return None

    def subscriptions(self, client: str) -> Iterator[SubscriptionEntry] | None:
        """Give the subscriptions of a client's session; None where the door has no such session."""
        del client
        return None

    def places(self) -> Iterator[PlaceEntry | None]:
        """Give how far readers are; none where there are so many that this is not to be asked every few seconds."""
        return iter(())

    @abstractmethod
    def fates(self, light_queue: bytes, offset: int) -> Iterator[FateEntry | None]:
        """Give how far each reader of a light queue is with the message at an offset, as the door knows now."""


def take_each(things: Iterable[Thing]) -> Iterator[Thing]:
    """Give each of the things that there are now, in their order; some may go before their turn.

    Each is let go of when the next one is asked for: what went meanwhile is freed by and by, not in one go at the end.
    """
    left = make_long_list(things)
    del things  # which may be a list, too
    left.reverse()
    while left:
        yield left.pop()


def describe_connection(
    transport: Transport,
    identity: Identity | None,
    client: str,
    *,
    vhost: str = "",
    channels: int = 0,
    is_held: bool = False,
) -> ConnectionEntry:
    """Return the entry of a connection."""
    return ConnectionEntry(
        conn_id=transport.conn_id,
        peer=transport.peer,
        user=None if identity is None else identity.user,
        client=client,
        since_ms=transport.since_ms,
        bytes_in=transport.bytes_in,
        bytes_out=transport.bytes_out,
        local=format_address(*transport.local_address),
        vhost=vhost,
        channels=channels,
        is_held=is_held,
    )


def name_connection(transport: Transport) -> str:
    """Return what RabbitMQ calls a connection, as its entry does, at a third of the cost."""
    return _name_of(transport.peer, format_address(*transport.local_address))


def _name_of(peer: str, local: str) -> str:
    return f"{peer} -> {local}"


def name_channel(connection: str, number: int) -> str:
    """Return what RabbitMQ calls a channel of a connection of that name."""
    return f"{connection} ({number})"


def name_some(clients: Iterable[bytes]) -> str:
    """Return the first of some clients as text, those of a group at a look."""
    return ", ".join(text_of(client) for client in islice(clients, NAMED_MAX))


def text_of(name: bytes) -> str:
    """Return a name as operators read it, whatever bytes it has."""
    return name.decode("utf-8", "backslashreplace")

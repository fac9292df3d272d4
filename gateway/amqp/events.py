"""What a connection reports; each is to be handled before the next is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from pamqp import base

from core.message import PublishBatch
from gateway.amqp.channel import Channel


@dataclass(frozen=True, slots=True)
class LoginAsked:
    """Credentials came; answer with `accept_login` or `refuse_login`."""

    mechanism: str
    user: str
    password: bytes
    client: str  # the name that the client gave the connection, maybe empty


@dataclass(frozen=True, slots=True)
class OpenAsked:
    """The client wants a virtual host; answer with `accept_open` or an error."""

    vhost: str


@dataclass(frozen=True)
class PublishRun:
    """Publishes on one channel; the batch is good until the next event. `first_number` counts with confirms on.

    `copies` are further routing keys of the batch's message, which is one then.
    """

    __slots__ = ("batch", "body_bytes", "channel", "copies", "first_number", "mandatory_count")

    channel: Channel
    batch: PublishBatch
    mandatory_count: int
    body_bytes: int
    first_number: int
    copies: tuple[bytes, ...]


@dataclass(frozen=True)
class SettleRun:
    """Acknowledgements and rejections on one channel: what they settle is in `channel.unacked`."""

    __slots__ = ("channel",)

    channel: Channel


@dataclass(frozen=True, slots=True)
class FramesTaken:
    """Some frames that say nothing by themselves: there may be more, but others may have their turn first."""


@dataclass(frozen=True, slots=True)
class MethodCame:
    """Any other method on an open channel."""

    channel: Channel
    method: base.Frame


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """A channel is no more, whoever closed it: what it holds is to be given back."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class ConnectionEnded:
    """The connection is over but for the answer to connection.close; `reason` is for the log, empty if all is well."""

    reason: str


Event = LoginAsked | OpenAsked | PublishRun | SettleRun | FramesTaken | MethodCame | ChannelEnded | ConnectionEnded

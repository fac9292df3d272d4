"""What a connection reports, in the order of the bytes.

A run of publishes lies in a batch of its own, until `release` gives its cutter back for the next run.
"""

from __future__ import annotations

from dataclasses import dataclass

from pamqp import base
from pamqp.commands import Basic, Connection as Method

from core.message import PublishBatch
from gateway.amqp.channel import Channel
from gateway.amqp.codec import PublishCutter
from gateway.amqp.frames import FRAME_METHOD, encode_frame
from gateway.amqp.handshake import bytes_of

NO_COPIES: dict[int, tuple[bytes, ...]] = {}


@dataclass(frozen=True, slots=True)
class LoginAsked:
    """Credentials came; answer with `accept_login` or `refuse_login`."""

    mechanism: str
    user: str
    password: bytes  # or the first message of a mechanism that goes in steps
    client: str  # the name that the client gave the connection, maybe empty


@dataclass(frozen=True, slots=True)
class ProofCame:
    """The next message of a mechanism that goes in steps; answer as to `LoginAsked`, or ask for one more."""

    response: bytes


@dataclass(frozen=True, slots=True)
class SecretCame:
    """A new secret of a client that was let in: answer with connection.update-secret-ok, or an error."""

    secret: bytes


@dataclass(frozen=True, slots=True)
class OpenAsked:
    """The client wants a virtual host; answer with `accept_open` or an error."""

    vhost: str


def secret_of(method: Method.SecureOk | Method.UpdateSecret) -> ProofCame | SecretCame:
    """Return what the client says to prove its name, or that it is still the same."""
    if isinstance(method, Method.SecureOk):
        return ProofCame(bytes_of(method.response))
    return SecretCame(bytes_of(method.new_secret))


class CutterPool:
    """Cutters of a door in whose batch no run lies: one, as mostly each run is done before the next comes."""

    __slots__ = ("_capacity", "_free")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._free: PublishCutter | None = None

    def show(self) -> PublishCutter:
        """Return the cutter that `take` would return; it stays here."""
        free = self._free
        if free is None:
            free = self._free = PublishCutter(self._capacity)
        return free

    def take(self) -> PublishCutter:
        """Return a cutter for a run."""
        free, self._free = self._free, None
        return PublishCutter(self._capacity) if free is None else free

    def give_back(self, cutter: PublishCutter) -> None:
        """Take a cutter back in whose batch no run lies any more."""
        self._free = cutter


class PublishRun:
    """Publishes on one channel. `first_number` counts with confirms on; `count` is how many came.

    `copies` are further routing keys of messages, by the place of their topic in the batch.
    """

    __slots__ = (
        "batch",
        "body_bytes",
        "channel",
        "copies",
        "count",
        "cutter",
        "first_number",
        "mandatory_count",
        "pool",
    )

    channel: Channel
    cutter: PublishCutter
    pool: CutterPool | None  # where the cutter goes back to, None once it is there
    batch: PublishBatch
    count: int
    mandatory_count: int
    body_bytes: int
    first_number: int
    copies: dict[int, tuple[bytes, ...]]

    def release(self) -> None:
        """Let the batch be used again."""
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.give_back(self.cutter)


def make_publish_run(pool: CutterPool, channel: Channel) -> PublishRun:
    """Return an event with the cutter that `pool` shows, in whose batch a run lies now."""
    run = PublishRun.__new__(PublishRun)  # a call with arguments takes longer than all the rest of an event
    cutter = pool.take()
    batch = cutter.batch
    run.channel = channel
    run.cutter = cutter
    run.pool = pool
    run.batch = batch
    run.count = batch.count
    run.mandatory_count = cutter.mandatory_count
    run.body_bytes = cutter.body_bytes
    run.first_number = channel.count_published(batch.count)
    run.copies = {0: cutter.copies} if cutter.copies else NO_COPIES
    return run


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


def note_method(channel: Channel, method: base.Frame, payload: bytes) -> MethodCame:
    """Return the event of a method; that of a `basic.get` is kept for the next frame that is the same."""
    event = MethodCame(channel, method)
    if isinstance(method, Basic.Get):
        channel.again = event
        channel.again_frame = encode_frame(FRAME_METHOD, channel.number, payload)
    return event


@dataclass(frozen=True, slots=True)
class ChannelEnded:
    """A channel is no more, closed by either side: what it holds is to be given back."""

    channel: Channel


@dataclass(frozen=True, slots=True)
class ConnectionEnded:
    """The connection is over but for the answer to connection.close; `reason` is for the log, empty if all is well."""

    reason: str


Credential = LoginAsked | ProofCame | SecretCame
Event = Credential | OpenAsked | PublishRun | SettleRun | FramesTaken | MethodCame | ChannelEnded | ConnectionEnded

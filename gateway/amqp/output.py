"""What one connection is sent: frames are put together and written in few writes.

Consumers, answers and declarations hold this and not the handler: nothing that a handler holds refers back to it, so
that it goes with its socket and not when the collector of cycles comes by.
"""

from __future__ import annotations

from pamqp import base
from pamqp.commands import Basic

from core.errors import LmqError
from gateway.amqp.channel import Channel
from gateway.amqp.connection import AmqpConnection
from gateway.amqp.errors import error_from_core
from gateway.amqp.out_pace import OutPace
from gateway.amqp.states import State
from gateway.net.protocol import Transport

OUTPUT_BYTES_MAX = 256 * 1_024  # put together before it is written: as much as may wait where a peer reads slowly
_OUTPUT_BYTES_MAX = OUTPUT_BYTES_MAX


class ConnectionOutput:
    """The way to one peer.

    `connection` is None until the time is known first. `is_ending`: the peer sends no more, and is delivered nothing
    more. `is_released`: what the connection had was given back.
    """

    __slots__ = ("_put_bytes", "connection", "is_ending", "is_released", "pace", "payload_max", "transport")

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.connection: AmqpConnection | None = None
        self.payload_max = 0
        self.is_ending = False
        self.is_released = False
        self.pace: OutPace | None = None  # where there is a limit to what it is sent
        self._put_bytes = 0

    def has_room(self) -> bool:
        """Return whether the peer takes more."""
        return self.transport.is_writable and not self.is_ending and not self.is_released

    def put(self, data: bytes) -> None:
        """Put frames into what is to be sent."""
        if self.connection is not None:
            self.connection.send(data)
            self._put_bytes += len(data)
            if self._put_bytes >= _OUTPUT_BYTES_MAX:
                self.flush()

    def flush(self) -> None:
        """Write what is to be sent."""
        self._put_bytes = 0
        data = self.connection.data_to_send() if self.connection is not None else b""
        if data:
            self.transport.write(data)

    def fail(self, error: LmqError) -> None:
        """Close the connection: what it was to be answered for is lost."""
        if self.connection is not None and self.connection.state == State.OPEN:
            self.connection.close(error_from_core(error))
            self.flush()

    def is_open(self, channel: Channel) -> bool:
        """Return whether a channel still takes answers."""
        if self.is_released or self.connection is None or channel.is_closing:
            return False
        return self.connection.channels.get(channel.number) is channel

    def send_method(self, channel: Channel, method: base.Frame) -> None:
        """Put a method into what is to be sent."""
        if self.connection is not None:
            self.connection.send_method(channel.number, method)

    def notify_cancel(self, channel: Channel, tag: str) -> None:
        """Tell the client, if it wants to know, that a consumer's queue is no more."""
        connection = self.connection
        if connection is not None and "consumer_cancel_notify" in connection.client_capabilities:
            self.send_method(channel, Basic.Cancel(tag, nowait=True))
            self.flush()

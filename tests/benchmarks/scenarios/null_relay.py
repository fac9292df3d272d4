"""The `null` peer: an MQTT relay that parses nothing of a message, so what it reaches is the load generator's ceiling.

What comes from a publisher goes to every subscriber as it is. A publisher whose first packet is QoS 1 is sent as many
PUBACKs as packets of that size have come.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

PUBACKS = b"\x40\x02\x00\x01" * 4096


class Relay(asyncio.Protocol):
    """A connection: of a subscriber if it sends a SUBSCRIBE with its CONNECT, else of a publisher."""

    subscribers: list[Relay] = []  # noqa: RUF012 - one relay a process
    publishers: list[Relay] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.is_set_up = False
        self.is_subscriber = False
        self.size = 0
        self.rest = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self.is_set_up:
            self.set_up(data)
        elif not self.is_subscriber:
            for subscriber in self.subscribers:
                subscriber.transport.write(data)
            if not self.size:
                self.size = packet_size(data) if data[0] & 6 else -1
            if self.size > 0:
                acks, self.rest = divmod(self.rest + len(data), self.size)
                self.transport.write(PUBACKS[: acks * 4])

    def set_up(self, data: bytes) -> None:
        """Answer the CONNECT, and the SUBSCRIBE of one filter where there is one."""
        self.is_set_up = True
        self.is_subscriber = len(data) > packet_size(data)
        self.transport.write(b"\x20\x02\x00\x00" + (b"\x90\x03\x00\x01\x00" if self.is_subscriber else b""))
        (self.subscribers if self.is_subscriber else self.publishers).append(self)

    def pause_writing(self) -> None:
        for publisher in self.publishers:
            publisher.transport.pause_reading()

    def resume_writing(self) -> None:
        for publisher in self.publishers:
            publisher.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        for group in (self.subscribers, self.publishers):
            if self in group:
                group.remove(self)


def packet_size(data: bytes) -> int:
    """Return the bytes of the MQTT packet that `data` starts with."""
    size = shift = 0
    at = 1
    while True:
        size |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return at + size


async def serve(port: int) -> None:
    """Relay until ended."""
    server = await asyncio.get_running_loop().create_server(Relay, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))

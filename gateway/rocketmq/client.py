"""One client that is connected, as the request families know it."""

from __future__ import annotations

from typing import Protocol

from lmq.remoting.commands import Command, encode_command


class Output(Protocol):
    """What a client is written to by."""

    conn_id: int
    peer: str  # its address, for people

    @property
    def is_writable(self) -> bool:
        """Whether the client reads what it is sent."""

    def write(self, data: bytes) -> None:
        """Send `data`."""


class Client:
    """One connection."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.client_id = ""
        self.language = 0
        self.version = 0
        self.lag_ms: int | None = None  # the least that our clock was seen ahead of this client's requests
        self.late_since_ms: int | None = None  # all its requests looked late, by that
        self.consumer_groups: set[str] = set()
        self.producer_groups: set[str] = set()

    def send(self, command: Command) -> None:
        """Send a command to this client."""
        self.output.write(encode_command(command))

"""Requests of ours that clients answer: each ends once, with its answer or without one."""

from __future__ import annotations

from collections.abc import Callable

from gateway.rocketmq.client import Client
from lmq.remoting.commands import Command

CALL_MS = 10_000  # a client that has not answered then does not, as official brokers have it
CALLS_MAX = 10_000  # that wait for their answers; chosen: each is an object and a deadline
CLIENT_CALLS_MAX = 1_024  # of one client, so that none takes all of CALLS_MAX

Then = Callable[[Command | None], None]
"""Gets the client's answer, None where there will be none."""


class Calls:
    """The requests that clients were sent and did not answer yet."""

    def __init__(self) -> None:
        self._by_client: dict[int, dict[int, tuple[Then, int]]] = {}  # connection -> number -> what then, until when
        self._count = 0
        self._last = 0

    def call(self, client: Client, command: Command, then: Then, now_ms: int) -> None:
        """Send a client a request; it is numbered here.

        `then` is called at once where too many wait, or the client does not read what it was sent before.
        """
        conn_id = client.output.conn_id
        waiting = self._by_client.get(conn_id, {})
        is_full = self._count >= CALLS_MAX or len(waiting) >= CLIENT_CALLS_MAX
        if is_full or not client.output.is_writable:
            then(None)
            return
        self._last = (self._last + 1) & 0x7FFFFFFF
        self._by_client.setdefault(conn_id, waiting)[self._last] = (then, now_ms + CALL_MS)
        self._count += 1
        command.opaque = self._last
        client.send(command)

    def settle(self, conn_id: int, response: Command) -> None:
        """Take a client's answer; one to nothing that was asked is let go."""
        waiting = self._by_client.get(conn_id)
        found = waiting.pop(response.opaque, None) if waiting is not None else None
        if found is None:
            return
        self._count -= 1
        if not waiting:
            del self._by_client[conn_id]
        found[0](response)

    def drop(self, conn_id: int) -> None:
        """The client is gone: what it did not answer ends without an answer."""
        waiting = self._by_client.pop(conn_id, {})
        self._count -= len(waiting)
        for then, _ in waiting.values():
            then(None)

    def expire(self, now_ms: int) -> None:
        """End what was not answered in time."""
        for conn_id, waiting in list(self._by_client.items()):
            late = [number for number, (_, until_ms) in waiting.items() if until_ms <= now_ms]
            ended = [waiting.pop(number)[0] for number in late]
            self._count -= len(ended)
            if not waiting:
                self._by_client.pop(conn_id, None)
            for then in ended:
                then(None)

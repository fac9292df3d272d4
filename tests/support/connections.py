"""Handlers and listeners for tests of the sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import asynccontextmanager

import pytest

from core.broker import Broker
from core.metrics import LoopMetrics
from gateway.net.admission import Admission
from gateway.net.connection_table import ConnectionTable
from gateway.net.endpoint import Endpoint
from gateway.net.limits import ConnectionLimits
from gateway.net.listener import Listener
from gateway.net.protocol import ConnectionHandler
from gateway.net.shares import Shares
from gateway.runtime.loop import Clock, CoarseTimer, TurnRunner

UNACKED_AT, SEGMENTS_IN_AT = 24, 140  # of Linux's struct tcp_info
QUICK_ACKS = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="the system acknowledges as it likes")


class StillClock(Clock):
    """A clock that stands still."""

    def now_ms(self):
        return 5_000


def tcp_pair():
    """Return both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        return server.accept()[0], theirs


def count_unacknowledged(sock):
    """Return how many segments that were sent by `sock` its peer's TCP has not acknowledged."""
    return read_tcp_info(sock, UNACKED_AT)


def count_segments(sock):
    """Return how many segments came to `sock`, acknowledgements by themselves too."""
    return read_tcp_info(sock, SEGMENTS_IN_AT)


def read_tcp_info(sock, at):
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, at + 4)
    return struct.unpack_from("=I", info, at)[0]


class RecordingHandler(ConnectionHandler):
    """Writes down each call, and echoes what it gets unless told otherwise."""

    def __init__(self, transport):
        self.transport = transport
        self.calls = []
        self.received = bytearray()
        self.fails_on = ()
        self.deadline_ms = None
        self.echoes = True
        self.closes_at_eof = True
        self.heard = asyncio.Event()
        self.look = None  # called at each read
        self.seen = []  # what it returned
        self.steps = 0  # of work that each read makes, one for each share

    def _note(self, name):
        self.calls.append(name)
        self.heard.set()
        if name in self.fails_on:
            raise RuntimeError("a fault in the handler")

    def on_data(self, data, now_ms):
        self.received += data
        if self.look is not None:
            self.seen.append(self.look())
        self._note("data")
        if self.echoes:
            self.transport.write(data)
        self.left = self.steps
        return self.left > 0

    def go_on(self, now_ms):
        self._note("on")
        self.left -= 1
        return self.left > 0

    def on_eof(self, now_ms):
        self._note("eof")
        if self.closes_at_eof:
            self.transport.close()

    def on_writable(self, now_ms):
        self._note("writable")

    def on_closed(self, now_ms):
        self._note("closed")

    def on_timer(self, now_ms):
        self.deadline_ms = None
        self._note("timer")

    def next_deadline_ms(self):
        return self.deadline_ms

    async def until(self, name):
        """Wait until `name` was called."""
        while name not in self.calls:
            self.heard.clear()
            await asyncio.wait_for(self.heard.wait(), 20)


class Idle(Broker):
    """A broker without a store, which nothing is published to."""

    def __init__(self):  # nothing to open
        self.has_work = False


class Site:
    """One listening door whose handlers can be looked at."""

    def __init__(self, limits, clock=None):
        self.clock = clock or Clock()
        self.timer = CoarseTimer(self.clock)
        self.table = ConnectionTable()
        self.refused = {}
        self.handlers = []
        self.prepare = lambda handler: None
        self.endpoint = Endpoint(
            "test",
            self._connect,
            clock=self.clock,
            timer=self.timer,
            table=self.table,
            limits=limits,
            refused=self.refused,
            turns=TurnRunner(asyncio.get_running_loop(), self.clock, Idle()),
            admission=Admission(asyncio.get_running_loop().call_soon),
            shares=Shares(asyncio.get_running_loop().call_soon, LoopMetrics()),
        )
        self.address = ("", 0)

    def _connect(self, transport):
        handler = RecordingHandler(transport)
        self.prepare(handler)
        self.handlers.append(handler)
        return handler

    async def connect_socket(self):
        """Return a client's plain socket, which does not block and has said `x`, and its handler."""
        before = len(self.handlers)
        client = socket.create_connection(self.address)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(client, b"x")
        while len(self.handlers) == before:
            await asyncio.sleep(0)
        handler = self.handlers[-1]
        await handler.until("data")
        return client, handler

    async def connect(self, **tls):
        """Return a client's reader and writer."""
        return await asyncio.open_connection(*self.address, **tls)


async def run_turns():
    """Let the loop run so often that what came by then was read: what a peer on this machine wrote is there at once."""
    for _ in range(50):
        await asyncio.sleep(0)


@asynccontextmanager
async def open_site(limits=None, clock=None, make_layers=None, *, is_proxied=False, host="127.0.0.1"):
    """Yield a listening site; everything is closed at the end."""
    site = Site(limits or ConnectionLimits(), clock)
    listener = site.listener = Listener("test", site.endpoint, host, 0, make_layers, is_proxied=is_proxied)
    site.address = await listener.start()
    site.timer.start(asyncio.get_running_loop())
    try:
        yield site
    finally:
        listener.stop()
        site.timer.stop()
        site.table.abort_all()
        await run_turns()

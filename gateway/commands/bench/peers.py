"""What connections of a load do alike: publishers that keep to a window and a rate, consumers that count."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from gateway.commands.bench.figures import Tally, sent_ns
from gateway.commands.doors.place import Place
from gateway.commands.doors.security import make_context
from gateway.commands.doors.traffic import LinkError
from gateway.commands.refusing import EXIT_UNREACHABLE

CHUNK = 128  # messages in one write; chosen: of 256 B, 32 KiB
TICK_S = 0.001  # the loop's timers know milliseconds only
READY_S = 15.0  # chosen: the handshakes of thousands of connections on a busy machine


class Peer(asyncio.Protocol):
    """A connection. `ready` is met when it may begin, `over` when it has done all, or is lost."""

    def __init__(self, place: Place, tally: Tally) -> None:
        loop = asyncio.get_running_loop()
        self.place = place
        self.tally = tally
        self.ready: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()
        self.is_ending = False
        self.transport: asyncio.WriteTransport
        self._rest = b""

    async def open(self) -> None:
        """Connect, log in, and get ready.

        Raises:
            LinkError: That does not work.
        """
        place = self.place
        context = make_context(place.tls)
        try:
            async with asyncio.timeout(READY_S):
                await asyncio.get_running_loop().create_connection(lambda: self, place.host, place.port, ssl=context)
                await self.ready
        except (OSError, TimeoutError) as error:
            why = str(error) or f"no answer in {READY_S:.0f} s"
            raise LinkError(f"cannot connect to {place.door} {place.address}: {why}", EXIT_UNREACHABLE) from error

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say the first words."""
        self.transport = cast("asyncio.WriteTransport", transport)
        self.greet()

    def data_received(self, data: bytes) -> None:
        """Take what is whole, and keep the rest."""
        data = self._rest + data if self._rest else data
        self._rest = data[self.take(data) :]

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that it is lost, unless it was to end."""
        del exc
        self.fail(f"the connection to {self.place.door} {self.place.address} is lost", EXIT_UNREACHABLE)

    def fail(self, text: str, code: int) -> None:
        """End with an error, unless it is at the end anyway."""
        for waiting in (self.ready, self.over):
            if not waiting.done() and not self.is_ending:
                waiting.set_exception(LinkError(text, code))
                waiting.exception()  # it may be that nobody waits for it
        self.is_ending = True

    async def stop(self) -> None:
        """End the connection."""
        self.is_ending = True
        transport = getattr(self, "transport", None)
        if transport is not None:
            transport.close()

    def greet(self) -> None:
        """Say the first words."""
        raise NotImplementedError

    def take(self, data: bytes) -> int:
        """Take whole packets; return where the rest begins."""
        raise NotImplementedError


class Pace:
    """How many messages one publisher sends: a number, at a rate, with so many unanswered."""

    def __init__(self, count: int, rate: float | None, window: int) -> None:
        self.left = count
        self.window = window
        self._rate = rate
        self._begun_s = 0.0
        self._sent = 0

    def begin(self) -> None:
        """Let the rate count from now on."""
        self._begun_s = time.perf_counter()

    def allow(self) -> int:
        """Return how many may be sent now."""
        if self._rate is None:
            return min(self.left, CHUNK)
        due = int((time.perf_counter() - self._begun_s) * self._rate) + 1
        return max(min(self.left, due - self._sent, CHUNK), 0)

    def note(self, count: int) -> None:
        """Note that so many were sent."""
        self.left -= count
        self._sent += count


class Publisher(Peer):
    """Sends bodies of one size; `answered` says how many arrived, where the door tells it."""

    def __init__(self, place: Place, tally: Tally, pace: Pace, *, is_answered: bool) -> None:
        super().__init__(place, tally)
        self.pace = pace
        self.unanswered = 0
        self.is_answered = is_answered
        self._is_paused = False
        self._is_waiting = False
        self._is_asked = False

    def begin(self) -> None:
        """Begin to publish."""
        self.pace.begin()
        self.pump()

    def pump(self) -> None:
        """Write as many messages as the window, the rate and the socket allow now."""
        self._is_waiting = False
        if self._is_paused or self.over.done():
            return
        count = self.pace.allow()
        if self.is_answered:
            count = min(count, self.pace.window - self.unanswered)
        if count > 0:
            self.transport.write(self.make(count))
            self.pace.note(count)
            if self.is_answered:
                self.unanswered += count
            else:
                self.tally.add(count, self.size * count)
        if not self.pace.left:
            self._maybe_end()
        elif not self.is_answered or self.unanswered < self.pace.window:
            self._pump_again(0.0 if count > 0 else TICK_S)

    def _pump_again(self, wait_s: float) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            loop = asyncio.get_running_loop()
            if wait_s:
                loop.call_later(wait_s, self.pump)
            else:
                loop.call_soon(self.pump)

    def answer(self, count: int) -> None:
        """Count messages that were answered."""
        self.unanswered -= count
        self.tally.add(count, self.size * count)
        if self.pace.left:
            self._pump_again(0.0)
        else:
            self._maybe_end()

    def _maybe_end(self) -> None:
        if self.unanswered or self._is_paused or self.over.done() or self._is_asked:
            return
        if self.is_answered:
            self.over.set_result(None)
        else:
            self._is_asked = True
            self.transport.write(self.question())

    def end(self) -> None:
        """Take the answer to the question: all before it was read."""
        if self._is_asked and not self.over.done():
            self.tally.last_s = time.perf_counter()
            self.over.set_result(None)

    def question(self) -> bytes:
        """Return what is asked behind the last message, where messages have no answers."""
        raise NotImplementedError

    def pause_writing(self) -> None:
        """Wait until the socket has room."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Go on."""
        self._is_paused = False
        self.pump()

    @property
    def size(self) -> int:
        """How many bytes a body has."""
        raise NotImplementedError

    def make(self, count: int) -> bytes:
        """Return messages that are sent now."""
        raise NotImplementedError


class Consumer(Peer):
    """Counts what comes, with how long it was on its way where the bodies say it."""

    def count(self, bodies: list[bytes]) -> None:
        """Count messages that came in one read."""
        if not bodies:
            return
        now_ns = time.time_ns()
        self.tally.add(len(bodies), sum(map(len, bodies)))
        for body in bodies:
            begun_ns = sent_ns(body)
            if begun_ns >= 0:
                self.tally.note_latency(now_ns - begun_ns)

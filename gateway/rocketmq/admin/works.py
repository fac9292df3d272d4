"""Answers that take more than one turn: each is made in steps, among the readers of the broker's turns."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Protocol, TypeVar

from core.broker import Broker
from core.errors import LmqError
from core.lmq.waiters import Reader
from core.message import AWAY, StoredBatch
from gateway.auth.rule import TOPIC
from gateway.events import Actor
from gateway.net.protocol import Transport
from gateway.rocketmq.client import Client
from gateway.rocketmq.consumer_manage import LaterAnswered
from gateway.rocketmq.errors import CommandRefusedError, response_code_of
from lmq.remoting.commands import Command, answer
from lmq.remoting.response_codes import ResponseCode

STEPS_A_TURN = 8  # of one answer; each looks at ITEMS_A_STEP things or one read
ITEMS_A_STEP = 32  # of what is cheap to look at; chosen, with STEPS_A_TURN 256 in a turn
WORKS_MAX = 4  # of one connection at the same time; chosen: a tool asks one thing after the other
TRIES_MAX = 1_000  # to read a message that is on its way; chosen: mostly it takes one
BODY_BYTES_MAX = 15 << 20  # of an answer: a frame has 16 MiB

Steps = Generator[None, None, Command]
"""Yields after each step, and returns the answer."""

Item = TypeVar("Item")


class AdminPeer(LaterAnswered, Protocol):
    """The connection that a request came in by."""

    transport: Transport
    client: Client

    def may_configure(self, name: bytes, kind: str = TOPIC) -> bool:
        """Whether this client may make, change and remove a topic or group."""

    def actor(self) -> Actor:
        """Return by whose doing something happens."""

    def find_administrator(self) -> Actor | None:
        """Return by whose doing something happens, where this client's user may do everything; else None."""


class _Work(Reader):
    """One answer under way."""

    def __init__(self, works: Works, peer: AdminPeer, request: Command, steps: Steps) -> None:
        self.works = works
        self.peer = peer
        self.request = request
        self.steps = steps
        self.response: Command | None = None

    def on_ready(self, now_ms: int) -> bool:  # noqa: ARG002 - the interface says so
        """Do some steps; answer after the last."""
        self.peer.settle(self.request, self._go_on)
        return False

    def _go_on(self) -> Command | None:
        try:
            for _ in range(STEPS_A_TURN):
                next(self.steps)
        except StopIteration as end:
            self.works.end(self)
            response: Command = end.value
            return response
        except BaseException:
            self.works.end(self)
            raise
        self.works.go_on(self)
        return None


class Works:
    """The answers under way of all connections."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._open: dict[int, list[_Work]] = {}  # by connection

    def begin(self, peer: AdminPeer, request: Command, steps: Steps) -> None:
        """Begin to make an answer.

        Raises:
            CommandRefusedError: The connection has too many under way.
        """
        works = self._open.get(peer.transport.conn_id, [])
        if len(works) >= WORKS_MAX:
            remark = f"{WORKS_MAX} requests of this kind are under way already"
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, remark)
        work = _Work(self, peer, request, steps)
        self._open.setdefault(peer.transport.conn_id, works).append(work)
        self.go_on(work)

    def go_on(self, work: _Work) -> None:
        """Let a work do its next steps in the next turn."""
        self._broker.request_run(work)

    def end(self, work: _Work) -> None:
        """Forget a work that is done."""
        conn_id = work.peer.transport.conn_id
        works = self._open.get(conn_id, [])
        if work in works:
            works.remove(work)
        if not works:
            self._open.pop(conn_id, None)

    def forget(self, conn_id: int) -> None:
        """End the works of a connection that is gone."""
        for work in self._open.pop(conn_id, ()):
            self._broker.cancel_run(work)


def stepwise(items: Iterable[Item]) -> Iterator[tuple[Item, bool]]:
    """Give each item, and whether a step ends with it."""
    for number, item in enumerate(items):
        yield item, number % ITEMS_A_STEP == ITEMS_A_STEP - 1


def read_store_ms(broker: Broker, into: StoredBatch, queue_ref: int, offset: int) -> Generator[None, None, int]:
    """Return when the message at an offset was stored, 0 where there is none."""
    for _ in range(TRIES_MAX):
        found = broker.read(queue_ref, offset, into, 1, 1)
        if found > 0:
            store_ms = int(into.store_ms[0])
            is_it = into.queue_offset[0] == offset
            into.clear()
            return store_ms if is_it else 0
        if found != AWAY:
            break
        yield
    return 0


def find_offset(broker: Broker, queue_ref: int, at_ms: int) -> Generator[None, None, int]:
    """Return the first offset stored at a moment or later, -1 where it cannot be told."""
    told: list[int] = []
    broker.find_offset(queue_ref, at_ms, told.append)
    for _ in range(TRIES_MAX):
        if told:
            return told[0]
        yield
    return -1


def check_size(body: bytes) -> bytes:
    """Return the body of an answer.

    Raises:
        CommandRefusedError: No frame takes it.
    """
    if len(body) > BODY_BYTES_MAX:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"the answer has more than {BODY_BYTES_MAX} bytes")
    return body


def answer_kept(request: Command, peer: AdminPeer, error: LmqError | None) -> None:
    """Answer that a change is written down, or why it is not."""
    if error is None:
        peer.answer(request, answer(request, ResponseCode.SUCCESS))
    else:
        peer.answer(request, answer(request, response_code_of(error), str(error)))

"""Messages of one queue that were pulled and are not done yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lmq.arguments import check_count
from lmq.message import Message
from lmq.queues import MessageQueue

LOCK_S = 30.0  # how long we rely on a lock that was not renewed; brokers keep it for 60


@dataclass(slots=True, frozen=True)
class FlowLimits:
    """How much may be pulled of one queue and not done: nothing more is pulled until it is less."""

    messages: int = 1_000
    body_bytes: int = 100 << 20
    span: int | None = 2_000  # between the first offset that is not done and the last

    def __post_init__(self) -> None:
        check_count("messages", self.messages, 1)
        check_count("body_bytes", self.body_bytes, 1)
        if self.span is not None:
            check_count("span", self.span, 1)


class ProcessQueue:
    """A queue that a consumer was given, from then until it is taken away.

    Args:
        queue: The queue.
        offset: The first message's number that is to be pulled.
        limits: How much may wait here.
    """

    def __init__(self, queue: MessageQueue, offset: int, limits: FlowLimits) -> None:
        self.queue = queue
        self.upcoming = offset  # what is to be pulled next
        self.is_dropped = False  # it is another's now: nothing of it is begun any more
        self._limits = limits
        self._messages: dict[int, Message] = {}  # by offset, in their order
        self._bytes = 0
        self._shrunk = asyncio.Event()
        self._locked_until_s = 0.0
        self.pulled_ms = self.consumed_ms = self.locked_ms = 0  # moments since 1970, as operators are told them

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def offset(self) -> int:
        """The first message's number that is not done: what is committed."""
        return next(iter(self._messages), self.upcoming)

    def put(self, messages: Sequence[Message], upcoming: int) -> None:
        """Take what was pulled, and note where to pull next."""
        self.pulled_ms = _now_ms()
        for message in messages:
            self._messages[message.queue_offset] = message
            self._bytes += len(message.body)
        self.upcoming = upcoming

    def remove(self, messages: Iterable[Message]) -> None:
        """Let go of messages that are done."""
        self.consumed_ms = _now_ms()
        for message in messages:
            gone = self._messages.pop(message.queue_offset, None)
            if gone is not None:
                self._bytes -= len(gone.body)
        self._shrunk.set()

    def measure(self) -> tuple[int, int, int, int]:
        """Return the first and the last offset of what is not done, how many messages and how many bytes that is."""
        if not self._messages:
            return 0, 0, 0, 0
        return next(iter(self._messages)), next(reversed(self._messages)), len(self._messages), self._bytes

    def first(self, count: int) -> list[Message]:
        """Return the first messages that are not done, in their order."""
        return [message for message, _ in zip(self._messages.values(), range(count), strict=False)]

    def replace(self, message: Message) -> None:
        """Put another in the place of the message with the same number."""
        self._messages[message.queue_offset] = message

    def drop(self) -> None:
        """The queue is another's now."""
        self.is_dropped = True
        self._shrunk.set()

    # Flow control

    @property
    def has_room(self) -> bool:
        """Whether more may be pulled."""
        limits = self._limits
        if len(self._messages) >= limits.messages or self._bytes >= limits.body_bytes:
            return False
        return limits.span is None or self.upcoming - self.offset <= limits.span

    async def wait_for_room(self) -> None:
        """Wait until more may be pulled, or the queue is another's."""
        while not self.has_room and not self.is_dropped:
            self._shrunk.clear()
            await self._shrunk.wait()

    # The lock of an ordered consumer

    @property
    def is_locked(self) -> bool:
        """Whether the queue is surely nobody else's now."""
        return time.monotonic() < self._locked_until_s

    def note_lock(self, *, is_held: bool) -> None:
        """Note what the broker said of our lock on the queue."""
        self._locked_until_s = time.monotonic() + LOCK_S if is_held else 0.0
        self.locked_ms = _now_ms() if is_held else self.locked_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""What a SUBSCRIBE waits for: light queues that are being opened, for a subscription begins at the end of its queue."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from core.errors import LmqError


class Opener(Protocol):
    """What opens queues: the broker."""

    def open_queue(self, queue_ref: int, then: Callable[[LmqError | None], None]) -> None:
        """Call back when the ends of a queue are known, at once or later."""


def _nothing() -> None:
    return


class Opening:
    """Queues that are opened together; `on_over` is called when the last of them is, or cannot be."""

    __slots__ = ("_left", "_opener", "failed", "on_over")

    def __init__(self, opener: Opener) -> None:
        self.failed: set[int] = set()  # those that cannot be opened now
        self.on_over: Callable[[], None] = _nothing
        self._opener = opener
        self._left = 0

    @property
    def is_over(self) -> bool:
        """Whether the engine has answered for all that were asked for so far."""
        return not self._left

    def ask(self, queue_ref: int) -> None:
        """Have a queue opened, too."""
        self._left += 1
        self._opener.open_queue(queue_ref, partial(self._note, queue_ref))

    def wait(self, tell: Callable[[Callable[[LmqError | None], None]], None]) -> None:
        """Wait for something else, too: `tell` takes what it calls back."""
        self._left += 1
        tell(self._note_other)

    def _note_other(self, error: LmqError | None) -> None:
        del error  # all that waits for the disk is told of it
        self._end_one()

    def _note(self, queue_ref: int, error: LmqError | None) -> None:
        if error is not None:
            self.failed.add(queue_ref)
        self._end_one()

    def _end_one(self) -> None:
        self._left -= 1
        if not self._left:
            on_over, self.on_over = self.on_over, _nothing  # it may refer back here: no cycle is left
            on_over()

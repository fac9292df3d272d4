"""Queues that are opened before they are asked where they begin and end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

from core.broker import Broker
from core.errors import LmqError

TRIES_MAX = 1_000  # turns that an answer in steps waits for a queue; chosen: mostly it takes one


def open_queues(broker: Broker, keys: Iterable[bytes], then: Callable[[LmqError | None], None]) -> None:
    """Call back when the ends of all these queues are known, at once or later, with the error where one's cannot be.

    Keys that no queue has are passed over.
    """
    refs = [ref for ref in map(broker.find_queue, keys) if ref >= 0]
    left = len(refs)
    failure: LmqError | None = None

    def note_open(error: LmqError | None) -> None:
        nonlocal left, failure
        left -= 1
        failure = error or failure
        if not left:
            then(failure)

    for ref in refs:
        broker.open_queue(ref, note_open)
    if not refs:
        then(None)


def opened(broker: Broker, queue_ref: int) -> Generator[None, None, bool]:
    """Return whether the ends of a queue are known, after as many steps as it takes."""
    told: list[LmqError | None] = []
    broker.open_queue(queue_ref, told.append)
    for _ in range(TRIES_MAX):
        if told:
            return told[0] is None
        yield
    return False

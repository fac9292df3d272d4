"""Names of queues and exchanges that were deleted, which nothing new may have yet.

What is taken and done in a queue is forgotten when it is deleted, the queue's row is deleted with the next commit. A
process that is killed between the two has the queue again, and restores what was done in it. So until the commit no
queue may begin under its name: the journal would know only what was done in that one.

Source: docs/storage-format.md, "Pop journal".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pamqp import base
from pamqp.commands import Exchange, Queue

from core.errors import LmqError
from gateway.amqp.definition_rows import EXCHANGE, QUEUE

Key = tuple[str, str]  # what it is, and its name


class TakenNames:
    """The names of one virtual host that are taken by what is no more.

    Args:
        when_kept: Calls back when all changes so far are kept.
    """

    def __init__(self, when_kept: Callable[[Callable[[LmqError | None], None]], None]) -> None:
        self._when_kept = when_kept
        self._light_names: dict[Key, bytes] = {}  # of each queue the light one
        self._waiting: dict[Key, set[Callable[[], None]]] = {}  # what waits until a deletion is durable

    def __contains__(self, key: object) -> bool:
        return key in self._light_names

    def light_name(self, key: Key) -> bytes:
        """Return the light queue of a queue that was deleted, empty where there is none."""
        return self._light_names.get(key, b"")

    def take(self, key: Key, light_name: bytes = b"") -> None:
        """Let nothing new have a name: what had it is deleted, and something of that is left."""
        self._light_names[key] = light_name

    def give_back(self, key: Key, *, is_durable: bool) -> None:
        """Let a name be had again, now that nothing is left; `is_durable`: once that is kept."""
        if is_durable:
            self._waiting[key] = set()
            self._when_kept(partial(self._note_kept, key))
        else:
            del self._light_names[key]

    def tell(self, key: Key, then: Callable[[], None]) -> bool:
        """Call back, once, when a name can be had again, where the disk is all that it waits for; return whether so."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.add(then)
        return waiting is not None

    def _note_kept(self, key: Key, error: LmqError | None) -> None:
        del error  # whatever waits for the disk is told of it
        del self._light_names[key]
        for then in self._waiting.pop(key):
            then()


def name_of(method: base.Frame) -> tuple[str, str] | None:
    """Return what a declaration declares, and its name; None for any other method."""
    if isinstance(method, Exchange.Declare):
        return EXCHANGE, method.exchange
    return (QUEUE, method.queue) if isinstance(method, Queue.Declare) else None

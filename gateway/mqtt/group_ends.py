"""Ends of shared subscriptions that are not written down yet.

The pop queue of a group is dropped at once, the row of its last subscription is deleted with the next commit. A process
that is killed between the two has the subscription again, and restores its group. So until the commit no group may
begin under that name: the journal would know no more than what the new one took.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from core.errors import LmqError
from gateway.mqtt.topics import split_share

Outcome = Callable[[LmqError | None], None]
Key = tuple[bytes, bytes]  # group and filter


class GroupEnds:
    """The groups that have ended, until that is durable.

    Args:
        when_kept: Calls back when all changes so far are kept.
    """

    def __init__(self, when_kept: Callable[[Outcome], None]) -> None:
        self._when_kept = when_kept
        self._durable: set[Key] = set()  # groups that a durable session was in
        self._waiting: dict[Key, list[Outcome]] = {}

    def watch(self, key: Key) -> None:
        """Take note that a durable session is in a group."""
        self._durable.add(key)

    def note(self, key: Key) -> None:
        """Take note that a group ended; the rows of its subscriptions were deleted."""
        if key in self._durable:
            self._durable.remove(key)
            self._waiting[key] = []
            self._when_kept(partial(self._note_kept, key))

    def is_awaited(self, topic_filter: bytes) -> bool:
        """Return whether the last group of a shared filter has ended and that is not durable: none may begin."""
        return split_share(topic_filter) in self._waiting

    def tell(self, topic_filter: bytes, then: Outcome) -> None:
        """Call back when an end that `is_awaited` is durable, or can no longer be."""
        self._waiting[split_share(topic_filter)].append(then)

    def _note_kept(self, key: Key, error: LmqError | None) -> None:
        for then in self._waiting.pop(key):
            then(error)

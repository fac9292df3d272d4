"""The consumers of one queue, each in turn.

A message costs as much among many consumers as among few: one that has no room is left out when its turn comes, and not
looked at again until it says that it has some.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar


class Taker(Protocol):
    """A consumer that messages are handed to."""

    def room(self) -> int:
        """Return how many more messages it takes now; where it says none, `note_room` is called when it has some."""


TakerT = TypeVar("TakerT", bound=Taker)


class Rota(Generic[TakerT]):
    """The consumers that may have room, in the order of their turns."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, TakerT] = OrderedDict()  # by their identity

    def __len__(self) -> int:
        """Return how many may have room."""
        return len(self._waiting)

    def note_room(self, taker: TakerT) -> None:
        """Let a consumer have its turn, after those that wait."""
        self._waiting.setdefault(id(taker), taker)

    def remove(self, taker: TakerT) -> None:
        """Let a consumer have no turn any more, harmless where it waits for none."""
        self._waiting.pop(id(taker), None)

    def first(self) -> TakerT | None:
        """Return the next consumer in turn that has room, or None where none has."""
        while self._waiting:
            taker = next(iter(self._waiting.values()))
            if taker.room() > 0:
                return taker
            self._waiting.popitem(last=False)
        return None

    def step(self) -> None:
        """End the turn of the first: it was handed its share."""
        self._waiting.move_to_end(next(iter(self._waiting)))

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
    """The consumers that may have room: those of the highest rank first, in one rank each in turn."""

    __slots__ = ("_first", "_others", "_rank")

    def __init__(self) -> None:
        self._rank = 0  # of the first
        self._first: OrderedDict[int, TakerT] = OrderedDict()  # of the highest rank that waits, by their identity
        self._others: dict[int, OrderedDict[int, TakerT]] | None = None  # of lower ranks, none empty

    def __len__(self) -> int:
        """Return how many of the highest rank may have room."""
        return len(self._first)

    def note_room(self, taker: TakerT, rank: int = 0) -> None:
        """Let a consumer have its turn, after those of its rank that wait."""
        if rank != self._rank and self._first:
            if self._others is None:
                self._others = {}
            if rank < self._rank:
                self._others.setdefault(rank, OrderedDict()).setdefault(id(taker), taker)
                return
            self._others[self._rank] = self._first
            self._first = OrderedDict()
        self._rank = rank
        self._first.setdefault(id(taker), taker)

    def remove(self, taker: TakerT, rank: int = 0) -> None:
        """Let a consumer have no turn any more, harmless where it waits for none."""
        if rank == self._rank:
            self._first.pop(id(taker), None)
            self._promote()
        elif self._others is not None and rank in self._others:
            self._others[rank].pop(id(taker), None)
            if not self._others[rank]:
                del self._others[rank]

    def first(self) -> TakerT | None:
        """Return the next consumer in turn that has room, or None where none has."""
        while self._first:
            taker = next(iter(self._first.values()))
            if taker.room() > 0:
                return taker
            self._first.popitem(last=False)
            self._promote()
        return None

    def step(self) -> None:
        """End the turn of the first: it was handed its share."""
        self._first.move_to_end(next(iter(self._first)))

    def _promote(self) -> None:
        """Let the next rank be first where nobody of the first waits any more."""
        if not self._first and self._others:
            self._rank = max(self._others)
            self._first = self._others.pop(self._rank)

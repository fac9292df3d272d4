"""Sessions, connections, channels, subscriptions and bindings as parts of long lists."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from core.long_list import make_long_list
from gateway.admin.rosters.newer import take_newer
from gateway.admin.rosters.part import Part

LOOKS_A_STEP = 64  # things between two looks at the clock
Thing = TypeVar("Thing")
Kept = TypeVar("Kept", bound=Hashable)


class WalkedPart(Part[Thing], Generic[Kept, Thing]):
    """Things that come and go in no order: all are looked at when any did, 0.1 us each and more where they are nested.

    Args:
        walk: Begins a walk over what is there, which may go on while it changes; None is a look in vain.
        name: Says what one is called, once.
        tell: Returns what is told of one; None where there is nothing to be told any more.
        changes: Says something else once one came or went; None: that is not known, all are looked at each time.
        figures: What some have in columns where that may be quick to tell, anything of those that are gone (None).
    """

    def __init__(
        self,
        walk: Callable[[], Iterable[Kept | None]],
        name: Callable[[Kept], str],
        tell: Callable[[Kept], Thing | None],
        changes: Callable[[], object] | None = None,
        figures: Mapping[str, Callable[[Sequence[Kept | None]], Sequence[Any] | None]] | None = None,
    ) -> None:
        self._figures = figures or {}
        self._walk = walk
        self._name = name
        self._tell = tell
        self._changes = changes
        self._walked_at: object = None  # what `changes` said before the last walk that came to its end
        self._kept: list[Kept | None] = []  # None: it is gone
        self._names: list[str] = []
        self._there: dict[Kept, int] = {}  # with its number
        self._seen_in = array("q")  # by number: the last walk that met it
        self._walks = 0

    def arrivals(self) -> Iterator[None]:
        """Look at all of them, unless none came or went."""
        changes = None if self._changes is None else self._changes()
        if changes is not None and changes == self._walked_at:
            return
        there, kept, seen_in = self._there, self._kept, self._seen_in
        self._walks = walk = self._walks + 1
        for at, one in enumerate(self._walk()):
            if one is not None:
                number = there.get(one)
                if number is None:
                    number = there[one] = len(kept)
                    kept.append(one)
                    self._names.append(self._name(one))
                    seen_in.append(walk)
                seen_in[number] = walk
            if at % LOOKS_A_STEP == 0:
                yield
        for number, seen in enumerate(seen_in):
            gone = kept[number] if seen != walk else None
            if gone is not None:
                kept[number] = None
                del there[gone]
            if number % LOOKS_A_STEP == 0:
                yield
        self.size = len(kept)
        self._walked_at = changes
        yield

    def alive(self) -> int:
        """Return how many there are."""
        return len(self._there)

    def name(self, number: int) -> str:
        """Return what one was called when it came."""
        return self._names[number]

    def take(self, number: int) -> Thing | None:
        """Return what is told of one; None where it is gone."""
        one = self._kept[number]
        return None if one is None else self._tell(one)

    def figures(self, column: str, first: int, end: int) -> Sequence[Any] | None:
        """Return what some have in a column that is quick to tell now."""
        tell = self._figures.get(column)
        return None if tell is None else tell(self._kept[first:end])


class OrderedPart(Part[Thing], Generic[Kept, Thing]):
    """Things that are kept in the order they came: only those are looked at that came since the last question.

    Args:
        newest_first: Begins a walk over what is there, from its end.
        count: Says how many there are.
        is_there: Says whether one is there still.
        name: Says what one is called.
        tell: Returns what is told of one.
        figures: What some have in columns where that is quick to tell, anything of those that are gone.
        mark: Says another number once one came or went; None: that is not known.
    """

    def __init__(
        self,
        newest_first: Callable[[], Iterable[Kept]],
        count: Callable[[], int],
        is_there: Callable[[Kept], bool],
        name: Callable[[Kept], str],
        tell: Callable[[Kept], Thing],
        figures: Mapping[str, Callable[[Sequence[Kept]], Sequence[Any]]] | None = None,
        mark: Callable[[], int] | None = None,
    ) -> None:
        self._mark = mark
        self._figures = figures or {}
        self._newest_first = newest_first
        self._count = count
        self._is_there = is_there
        self._name = name
        self._tell = tell
        self._kept: list[Kept] = make_long_list(())

    def mark(self) -> int | None:
        """Return another number once one came or went; None: that is not known."""
        return None if self._mark is None else self._mark()

    def arrivals(self) -> Iterator[None]:
        """Take those that came after the last one that is still there."""
        for _ in take_newer(self._kept, self._newest_first, self._is_there):
            self.size = len(self._kept)
            yield

    def alive(self) -> int:
        """Return how many there are."""
        return self._count()

    def name(self, number: int) -> str:
        """Return what one is called."""
        return self._name(self._kept[number])

    def take(self, number: int) -> Thing | None:
        """Return what is told of one; None where it is gone."""
        one = self._kept[number]
        return self._tell(one) if self._is_there(one) else None

    def figures(self, column: str, first: int, end: int) -> Sequence[Any] | None:
        """Return what some have in a column that is quick to tell."""
        tell = self._figures.get(column)
        return None if tell is None else tell(self._kept[first:end])

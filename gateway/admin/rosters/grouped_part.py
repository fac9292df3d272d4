"""What hangs on others, such as the subscriptions of sessions, as a part of a long list."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from core.long_list import make_long_list
from gateway.admin.rosters.part import Part
from gateway.inventory import text_of

LOOKS_A_STEP = 64  # places of holders between two looks at the clock
COST_A_STEP = 1_024  # things between two looks at the clock, 0.1 us each
COST_OF_HOLDER = 16  # things that a holder costs as much as, about
TAKEN_A_STEP = 1_024  # things of which each costs less than 0.1 us
_OTHERWISE = bytes([1, 0]) + bytes(254)
Thing = TypeVar("Thing")
Held = tuple[bytes, bytes]  # the holder, and the thing


class _Changed(NamedTuple):
    """The things of a holder that got some of them after others had come elsewhere."""

    things: list[bytes]  # as the last walk met them
    numbers: Sequence[int]  # theirs


class GroupedPart(Part[Thing], Generic[Thing]):
    """Things of holders, each of which keeps its own in the order they came.

    All holders are looked at when a thing came or went anywhere, but not the things of those that have the same still.

    Args:
        walk: Begins a walk over the holders that there are, each once, with what it has; it goes on while they change.
        tell: Returns what is told of a thing; None where there is nothing to be told any more.
        changes: Says something else once a thing came or went.
        figures: What some have in columns where that may be quick to tell, anything of those that are gone (None).
    """

    names_at_once = TAKEN_A_STEP

    def __init__(
        self,
        walk: Callable[[], Iterable[tuple[bytes, list[bytes]]]],
        tell: Callable[[Held], Thing | None],
        changes: Callable[[], object],
        figures: Mapping[str, Callable[[Sequence[Held | None]], Sequence[Any] | None]],
    ) -> None:
        self._walk = walk
        self._tell = tell
        self._changes = changes
        self._figures = figures
        self._walked_at: object = None  # what `changes` said before the last walk that came to its end
        self._things: list[bytes] = make_long_list(())  # by number
        self._holders: list[bytes] = make_long_list(())  # by number
        self._is_gone = bytearray()  # by number
        self._there: dict[bytes, int] = {}  # holders, with their places
        self._firsts = array("q")  # by place: the number of the first thing that a holder had when it came
        self._ends = array("q")  # by place: the number behind the last of them
        self._changed: dict[int, _Changed] = {}  # by place: those that have others since
        self._seen_in = array("q")  # by place: the last walk that met it, -1: it is gone
        self._walks = 0
        self._gone: list[int] = make_long_list(())
        self.gone = self._gone

    def arrivals(self) -> Iterator[None]:
        """Look at all holders, unless nothing came or went."""
        changes = self._changes()
        if changes == self._walked_at:
            return
        self._walks = walk = self._walks + 1
        find, seen_in, is_changed = self._there.get, self._seen_in, self._changed.__contains__
        known, firsts, ends = self._things, self._firsts, self._ends
        cost = 0
        for name, things in self._walk():
            place = find(name, -1)
            if place >= 0:
                seen_in[place] = walk
                if is_changed(place) or known[firsts[place] : ends[place]] != things:
                    self._compare(place, things)
            elif things:
                place = self._there[name] = len(self._seen_in)
                self._seen_in.append(walk)
                self._firsts.append(len(self._things))
                self._add(name, things)
                self._ends.append(self.size)
            cost += COST_OF_HOLDER + len(things)
            if cost >= COST_A_STEP:
                cost = 0
                yield
        for place, seen in enumerate(self._seen_in):
            if 0 <= seen < walk:
                self._compare(place, [])
                self._seen_in[place] = -1
                del self._there[self._holders[self._firsts[place]]]
                del self._changed[place]
            if place % LOOKS_A_STEP == 0:
                yield
        self._walked_at = changes
        yield

    def _add(self, name: bytes, things: list[bytes]) -> None:
        """Give things their numbers."""
        self._things += things
        self._holders += [name] * len(things)
        self._is_gone += bytes(len(things))
        self.size = len(self._things)

    def _compare(self, place: int, things: list[bytes]) -> None:
        """Note what a holder has now: what it had before and has still stands in the same order."""
        changed, first, end = self._changed.get(place), self._firsts[place], self._ends[place]
        known = self._things[first:end] if changed is None else changed.things
        if known == things:
            return
        before = range(first, end) if changed is None else changed.numbers
        numbers, old, new = array("i"), 0, 0
        while old < len(known):
            same = min(TAKEN_A_STEP, len(known) - old, len(things) - new)
            while same and known[old : old + same] != things[new : new + same]:
                same //= 2
            numbers.extend(before[old : old + same])
            if not same:
                self._is_gone[before[old]] = 1
                self._gone.append(before[old])
            old, new = old + max(same, 1), new + same
        numbers.extend(range(len(self._things), len(self._things) + len(things) - new))
        self._add(self._holders[first], things[new:])
        self._changed[place] = _Changed(things, numbers)

    def alive(self) -> int:
        """Return how many there are."""
        return self.size - len(self.gone)

    def name(self, number: int) -> str:
        """Return what a thing is called."""
        return text_of(self._things[number])

    def names(self, first: int, end: int) -> str:
        """Return what some things are called."""
        lines = b"\n".join(self._things[first:end])
        return text_of(lines) if lines.count(b"\n") == end - first - 1 else super().names(first, end)

    def there(self, first: int, end: int) -> bytes:
        """Return for each thing whether it is there."""
        return bytes(self._is_gone[first:end]).translate(_OTHERWISE)

    def take(self, number: int) -> Thing | None:
        """Return what is told of a thing; None where it is gone."""
        return None if self._is_gone[number] else self._tell((self._holders[number], self._things[number]))

    def figures(self, column: str, first: int, end: int) -> Sequence[Any] | None:
        """Return what some have in a column that is quick to tell now."""
        tell = self._figures.get(column)
        if tell is None:
            return None
        held = zip(self._holders[first:end], self._things[first:end], strict=True)
        return tell([None if gone else one for gone, one in zip(self._is_gone[first:end], held, strict=True)])

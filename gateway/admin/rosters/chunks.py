"""The things of a long list some at a time, with what they have in the column that is asked for."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from gateway.admin.rosters import members
from gateway.admin.rosters.column import NAME, Column
from gateway.admin.rosters.first_page import Chunk, Keyed, choose_before
from gateway.admin.rosters.members import Members
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.sorting import LOOKS
from gateway.admin.rosters.spans import walk_spans
from gateway.admin.steps import Steps

FIGURES_A_STEP = 1_024  # things that are asked for what they have in a column with one look at what none of them passes
TOLD_A_STEP = 64  # things that are told of at once: a light queue with hundreds of readers takes 10 us and more
Thing = TypeVar("Thing")
Source = TypeVar("Source", bound=Hashable)


class Chunks(NamedTuple, Generic[Source, Thing]):
    """The things that there were at a moment, and a column."""

    things: Members[Source, Thing]
    column: Column[Thing]
    until: int  # the number behind the last of them
    texts: Sequence[str]  # their names, as `Members` has them

    def walk(self, *, reverse: bool) -> Iterator[Chunk]:
        """Give all of them, the lowest numbers first, or with `reverse` the highest."""
        if self.column.name == NAME:
            spans = walk_spans(self.until, members.TEXT_COUNT, reverse=reverse)
            for text, (first, end) in zip(reversed(self.texts) if reverse else self.texts, spans, strict=True):
                yield Chunk(first, end, partial(_split, text), partial(_names_before, text, first, reverse))
            return
        for first, end in walk_spans(self.until, FIGURES_A_STEP, reverse=reverse):
            yield Chunk(first, end, partial(self._tell, first, end), partial(self._figures_before, first, end, reverse))

    async def _tell(self, first: int, end: int) -> Sequence[Any]:
        """Return what some things have, anything of that kind where one is gone; nothing where all are."""
        part, at = self.things.part_of(first, end)
        if part is not None:
            told = await self._tell_at_once(part, at, end - first)
            if told is not None:
                return told
        asked = await self._ask(range(first, end))
        anything = next((figure for figure in asked if figure is not None), None)
        return [] if anything is None else [anything if figure is None else figure for figure in asked]

    async def _ask(self, numbers: Sequence[int]) -> list[Any]:
        steps, found = Steps(), list[Any]()
        key_of = self.things.figure_key(self.column.key)
        for at in range(0, len(numbers), LOOKS):  # each may cost all that is told of a thing
            found += map(key_of, numbers[at : at + LOOKS])
            await steps.rest()
        return found

    async def _tell_at_once(self, part: Part[Thing], at: int, count: int) -> Sequence[Any] | None:
        """Return what things have from one number of their part on, as the part says; None where it does not."""
        name = self.column.name
        if part.is_cheap(name, at, at + count):
            return part.figures(name, at, at + count)
        steps, found = Steps(), list[Any]()
        for begin in range(at, at + count, TOLD_A_STEP):
            told = part.figures(name, begin, min(begin + TOLD_A_STEP, at + count))
            if told is None:
                return None
            found += told
            await steps.rest()
        return found

    async def _figures_before(self, first: int, end: int, reverse: bool, bound: Any) -> list[Keyed]:  # noqa: ANN401, FBT001 - as a key, of a partial
        """Return those that stand before `bound`, without those that went; None: all."""
        part, at = self.things.part_of(first, end)
        numbers: Sequence[int] = range(first, end)
        if part is not None:
            most = part.at_most(self.column.name, at, at + end - first) if bound is not None else None
            if most is not None:
                if max(most) <= bound if reverse else bound <= 0:
                    return []
                numbers = (
                    [number for number, figure in enumerate(most, first) if figure > bound] if reverse else numbers
                )
            told = await self._tell_at_once(part, at, end - first)
            if told is not None:
                return choose_before(told, first, bound, reverse=reverse)
        asked = await self._ask(numbers)
        pairs = [(figure, number) for figure, number in zip(asked, numbers, strict=True) if figure is not None]
        if bound is None:
            return pairs
        return [pair for pair in pairs if (pair[0] > bound if reverse else pair[0] < bound)]


async def _split(text: str) -> Sequence[Any]:
    return text.split("\n")


async def _names_before(text: str, base: int, reverse: bool, bound: str | None) -> list[Keyed]:  # noqa: FBT001 - of a partial
    return choose_before(text.split("\n"), base, bound, reverse=reverse)

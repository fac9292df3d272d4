"""What is in a long list: the number of each thing, in the order they came, its name, and whether it is told gone."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from core.long_list import make_long_list
from gateway.admin.rosters import sorting
from gateway.admin.rosters.part import Part, on_a_line
from gateway.admin.rosters.runs import Runs
from gateway.admin.rosters.searching import choose
from gateway.admin.rosters.sorting import Key
from gateway.admin.rosters.spans import walk_spans
from gateway.admin.steps import Steps, walk

TEXT_COUNT = 1_024  # names in one text
DEAD_MIN = 1_000  # things or sources that are gone, and more than are there, before a list is worn
TAKEN_A_STEP = 256  # things that are noted as gone at once
LOOKED_FOR_A_STEP = 16  # things to be shown that are looked for at once: one of a long session costs 0.1 ms
MARKS_A_STEP = 256  # parts that are found to be as they were, of which each costs less than 0.2 us
THERE_A_STEP = 64  # things of which it is found out at once whether they are there
FIRST_MAX = 2_000  # numbers of which each is asked whether its thing is there: what a first page may look through
_NUMBER_BITS = 32
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
Thing = TypeVar("Thing")
Source = TypeVar("Source", bound=Hashable)


class Members(Generic[Source, Thing]):
    """The things of several sources, each of which comes and goes as a whole.

    Args:
        sources: Says where things come from now; None is a look in vain.
        open_source: Returns the things of a source.
        changes: Says something else once things came to a part, or went, that has no other numbers for them some day,
            or a source came or went; None: that is not known, all are looked at each time.
    """

    def __init__(
        self,
        sources: Callable[[], Iterable[Source | None]],
        open_source: Callable[[Source], Part[Thing]],
        changes: Callable[[], object] | None = None,
    ) -> None:
        self._sources = sources
        self._open = open_source
        self._changes = changes
        self._seen: object = None  # what `changes` said before the last look at all
        self._still = 0  # things that there were then in parts that keep their numbers
        self._lock = asyncio.Lock()
        self._is_worn = False
        self._parts: dict[Source, Part[Thing]] = {}
        self._by_index: list[Part[Thing]] = []
        self._marks: list[int | None] = []  # by part: what it said before the last look
        self._alive: list[int] = []  # by part: how many things it had then
        self._moving: list[int] = []  # the parts that may have other numbers for their things some day
        self._places: list[Runs] = []  # by part: the numbers here of its things
        self._noted: list[int] = []  # by part: how many of those that it told gone are noted
        self._codes = Runs()  # by number: part and number in it
        self._texts: list[str] = []  # names, many in each
        self._last: list[str] = []  # those that make no full text yet
        self._there = bytearray()  # by number: whether it is not told gone
        self._told = 0  # things that are told gone
        self.dead = 0  # things that are gone; where not all of those are told, each is asked

    def __len__(self) -> int:
        """Return how many numbers are given."""
        return len(self._codes)

    @property
    def is_worn(self) -> bool:
        """Return whether most of it is gone, or has other numbers now: a new list is better."""
        return self._is_worn or any(self._by_index[index].is_left for index in self._moving)

    @property
    def texts(self) -> list[str]:
        """The names of all, `TEXT_COUNT` in each text but the last, each on a line."""
        return [*self._texts, "\n".join(self._last)] if self._last else list(self._texts)

    # What comes and goes

    async def take_in(self) -> None:
        """Take in what came, and note what went."""
        async with self._lock:
            changes, steps = None if self._changes is None else self._changes(), Steps()
            moved = 0
            for index in self._moving:
                moved += await self._look(index, steps)
            if changes is None or changes != self._seen:
                moved += await self._look_at_all(steps)
                self._seen = changes
            alive = moved + self._still
            self.dead = max(len(self._codes) - alive, 0)
            self._is_worn = self._is_worn or self.dead > max(DEAD_MIN, alive)

    async def _look_at_all(self, steps: Steps) -> int:
        """Look at the parts that keep their numbers, and at new ones; return how many things those have that do not."""
        known, count = len(self._by_index), 0
        async for source in walk(self._sources(), steps):
            count += 1
            if source not in self._parts:
                self._add(source)
        moved = still = 0
        moving = set(self._moving)
        for index, part in enumerate(self._by_index):
            if index in moving:
                moved += await self._look(index, steps) if index >= known else 0
                continue
            mark = part.mark()
            if mark is None or mark != self._marks[index]:
                self._alive[index] = await self._look(index, steps)
                self._marks[index] = mark
            elif index % MARKS_A_STEP == 0:
                await steps.rest()
            still += self._alive[index]
        gone = len(self._parts) - count
        self._still, self._is_worn = still, gone > max(DEAD_MIN, count)
        return moved

    def _add(self, source: Source) -> None:
        part = self._parts[source] = self._open(source)
        if type(part).is_left is not Part.is_left:
            self._moving.append(len(self._by_index))
        self._by_index.append(part)
        self._places.append(Runs())
        self._noted.append(0)
        self._marks.append(None)
        self._alive.append(0)

    async def _look(self, index: int, steps: Steps) -> int:
        """Take in what came to a part, and note what is told gone; return how many things it has."""
        part = self._by_index[index]
        for _ in part.arrivals():
            await self._name_new(index, part, steps)
        await self._name_new(index, part, steps)  # what its last step gave numbers
        alive = part.alive()
        while self._note_gone(index, part):
            await steps.rest()
        return alive

    async def _name_new(self, index: int, part: Part[Thing], steps: Steps) -> None:
        """Give the new things of a part their numbers here, and note their names."""
        base, places = index << _NUMBER_BITS, self._places[index]
        while (first := len(places)) < part.size:
            end = min(first + part.names_at_once, first + TEXT_COUNT - len(self._last), part.size)
            names = part.names(first, end)
            places.add(len(self._codes), end - first)
            self._codes.add(base | first, end - first)
            self._there += b"\1" * (end - first)
            if end - first == TEXT_COUNT:
                self._texts.append(names)
            else:
                self._last += names.split("\n")
            if len(self._last) == TEXT_COUNT:
                self._texts.append("\n".join(self._last))
                self._last.clear()
            await steps.rest()
        await steps.rest()

    def _note_gone(self, index: int, part: Part[Thing]) -> bool:
        """Note some of the things of a part that are told gone; return whether there are more."""
        places, noted = self._places[index], self._noted[index]
        for number in part.gone[noted : noted + TAKEN_A_STEP]:
            if number >= len(places):  # it came and went meanwhile
                return False
            self._there[places[number]] = 0
            self._told += 1
            self._noted[index] += 1
        return self._noted[index] < len(part.gone)

    async def find_there(self, steps: Steps | None = None) -> bytearray:
        """Return for each number whether its thing is there."""
        count = len(self._codes)
        if self._told == self.dead:
            return self._there[:count]
        steps, there = steps or Steps(), bytearray()
        for first, end in walk_spans(count, THERE_A_STEP, reverse=False):
            part, at = self.part_of(first, end)
            if part is None:
                there += bytes([self.thing(number) is not None for number in range(first, end)])
            else:
                there += part.there(at, at + end - first)
            await steps.rest()
        return there

    async def choose_alive(self, numbers: Sequence[int], steps: Steps | None = None) -> array[int]:
        """Return those of some numbers whose things are there."""
        steps = steps or Steps()
        if len(numbers) > FIRST_MAX:
            return await choose(numbers, await self.find_there(steps), TEXT_COUNT, steps)
        alive = array("i")
        for looked, number in enumerate(numbers):
            if self.thing(number) is not None:
                alive.append(number)
            if looked % 64 == 0:
                await steps.rest()
        return alive

    # What things are

    async def take(self, numbers: Sequence[int]) -> list[Thing]:
        """Return things, but those that are gone."""
        steps, things = Steps(), make_long_list(list[Thing]())
        for at in range(0, len(numbers), LOOKED_FOR_A_STEP):
            found = map(self.thing, numbers[at : at + LOOKED_FOR_A_STEP])
            things += [thing for thing in found if thing is not None]
            await steps.rest()
        return things

    def thing(self, number: int) -> Thing | None:
        """Return a thing; None where it is gone."""
        code = self._codes[number]
        return self._by_index[code >> _NUMBER_BITS].take(code & _NUMBER_MASK)

    def name_of(self, number: int) -> str:
        """Return what a thing is called, on one line."""
        code = self._codes[number]
        return on_a_line(self._by_index[code >> _NUMBER_BITS].name(code & _NUMBER_MASK))

    def part_of(self, first: int, end: int) -> tuple[Part[Thing] | None, int]:
        """Return the part that things are of, side by side, and the number of the first of them in it."""
        code = self._codes[first]
        if self._codes[end - 1] - code != end - 1 - first:
            return None, 0
        return self._by_index[code >> _NUMBER_BITS], code & _NUMBER_MASK

    def tell(self, column: str, numbers: Sequence[int]) -> Sequence[Any] | None:
        """Return what some things have in a column where their part tells it at once; numbers ascend."""
        first, end = numbers[0], numbers[-1] + 1
        part, at = self.part_of(first, end) if end - first <= 2 * len(numbers) else (None, 0)
        if part is None or (len(numbers) > sorting.TOLD_AT_ONCE and not part.is_cheap(column, at, at + end - first)):
            return None
        told = part.figures(column, at, at + end - first)
        if told is None or end - first == len(numbers):
            return told
        return [told[number - first] for number in numbers]  # some between them are gone

    def tell_scattered(self, column: str, numbers: Sequence[int]) -> Sequence[Any] | None:
        """Return what some things have in a column, wherever they are, where their part tells it at once."""
        part, at = self.part_of(0, len(self._codes))
        return None if part is None else part.scattered(column, [at + number for number in numbers])

    def name_key(self) -> Key:
        """Return a key of names that is quick where numbers ascend: of one text after the other."""
        at, names = -1, [""]

        def key_of(number: int) -> str:
            nonlocal at, names
            text = number // TEXT_COUNT
            if text != at:
                at, names = text, list(self._last) if text >= len(self._texts) else self._texts[text].split("\n")
            return names[number % TEXT_COUNT]

        return key_of

    def figure_key(self, key: Callable[[Thing], object]) -> Key:
        """Return a key of numbers that asks each thing; it is None for one that is gone."""

        def key_of(number: int) -> object:
            thing = self.thing(number)
            return None if thing is None else key(thing)

        return key_of

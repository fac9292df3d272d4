"""A long list that is kept between two questions: what came since is taken in, and orders are kept by column.

Of each thing it has a number, in the order they came, and its name; figures are asked of the thing itself when it is
shown. An order of many by a figure is made anew every few seconds, so seldom that all such orders take a hundredth of
the time; an order by name is never old: what came since stands in its place in it.

Source: docs/decisions/0057-lists-kept-sorted.md.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeVar

from core.long_list import make_long_list
from gateway.admin.pace import Pace
from gateway.admin.rosters.first_page import Chunk, Keyed, find_first, name_chunks, tell_before, walk_spans
from gateway.admin.rosters.merged_rows import slice_rows
from gateway.admin.rosters.part import Part, on_a_line
from gateway.admin.rosters.runs import Runs
from gateway.admin.rosters.searching import Search, choose, find_hits, keep_both
from gateway.admin.rosters.sorting import LOOKS, Key, sort_numbers
from gateway.admin.steps import Steps

TEXT_COUNT = 1_024  # names in one text
WAITED_S = 0.05  # an order that costs more is made anew beside the questions, which go by the old one
SHARE = 20  # an order of few by a figure is used for so many times what it cost
FEW = 4_000  # things: their order costs 10 ms at most
FRESH_MAX = 2_000  # things that came since an order was made, before it is made anew
DEAD_MIN = 1_000  # things or sources that are gone, and more than are there, before a list is worn
TAKEN_A_STEP = 256  # things of a list without pages that are looked for at once
THERE_A_STEP = 64  # things of which it is found out at once whether they are there
FIGURES_A_STEP = 512  # things that are asked for what they have in a column with one look at what none of them passes
LONG = 10_000  # things; of more the first pages are found before all are in order
FIRST_MAX = 2_000  # things up to the end of such a page
ORDERS_MAX = 8  # columns; the one that was made longest ago goes
IDLE_S = 60.0  # without a question, then the list is forgotten
NAME = "name"  # the column that is the same for good
_NUMBER_BITS = 32
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
Thing = TypeVar("Thing")
Source = TypeVar("Source", bound=Hashable)


class Order(NamedTuple):
    """All things that there were at a moment, by one column."""

    numbers: array[int]
    until: int  # the first number that came later
    dead: int  # things that were known to be gone
    made_at_s: float
    cost_s: float  # the processor's time


class Column(NamedTuple, Generic[Thing]):
    """What things are sorted by."""

    name: str  # what the order is known by; `NAME` for that of names
    key: Callable[[Thing], object]  # not asked for names
    reverse: bool = False  # the greatest comes first


class Found(NamedTuple, Generic[Thing]):
    """A part of a list."""

    total: int
    filtered: int
    things: list[Thing]


class Roster(ABC, Generic[Source, Thing]):
    """A list of things from several sources, each of which comes and goes as a whole."""

    def __init__(self) -> None:
        self.used_at_s = monotonic()
        self.pace = Pace()  # how often orders of many are made anew
        self._lock = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[Order]] = {}
        self.is_worn = False  # most of it is gone: the next question is better asked of a new one
        self._parts: dict[Source, Part[Thing]] = {}
        self._by_index: list[Part[Thing]] = []
        self._named: list[int] = []  # by part: how many of its things are taken in
        self._codes = Runs()  # by number: part and number in it
        self._texts: list[str] = []  # names, many in each
        self._last: list[str] = []  # those that make no full text yet
        self._dead = 0
        self._orders: dict[str, Order] = {}

    @abstractmethod
    def sources(self) -> Iterable[Source]:
        """Return where things come from now."""

    @abstractmethod
    def open(self, source: Source) -> Part[Thing]:
        """Return the things of a source."""

    def stop(self) -> None:
        """Make no order any more."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}

    async def find(self, column: Column[Thing], first: int, end: int, search: Search | None) -> Found[Thing]:
        """Return the things from `first` to before `end`, in the order of a column.

        Args:
            column: What they are sorted by.
            first: The first place.
            end: The place behind the last one.
            search: Which names are wanted, None for all.
        """
        self.used_at_s = monotonic()
        await self._take_in()
        key_of = self._name_of if column.name == NAME else self._key_of(column.key)
        if self._is_long_and_new(column.name):
            found = await self._find_edge(column, max(first, 0), end, search)
            if found is not None:
                if len(self._tasks) < ORDERS_MAX:  # else one that asks for ever other columns has no end of them made
                    self._begin_order(column.name, key_of)
                return found
        order = await self._find_order(column.name, key_of)
        count = len(self._codes)
        numbers: Sequence[int] = order.numbers
        fresh: Sequence[int] = range(order.until, count)
        if search is not None:
            hits = await find_hits(search, self._all_texts(), TEXT_COUNT, count)
            numbers = await choose(numbers, hits, TEXT_COUNT)
            fresh = await choose(fresh, hits, TEXT_COUNT)
        fresh = await sort_numbers(fresh if self._dead == 0 else await self._choose_alive(fresh), key_of)
        filtered = len(numbers) + len(fresh)
        low, high = min(max(first, 0), filtered), max(min(end, filtered), 0)
        if column.reverse:
            low, high = filtered - high, filtered - low
        things = await self._take(await slice_rows(numbers, fresh, key_of, low, high))
        return Found(count - self._dead, filtered, things[::-1] if column.reverse else things)

    async def _take(self, numbers: Sequence[int]) -> list[Thing]:
        steps, things = Steps(), make_long_list(list[Thing]())
        for at in range(0, len(numbers), TAKEN_A_STEP):
            found = map(self._thing, numbers[at : at + TAKEN_A_STEP])
            things += [thing for thing in found if thing is not None]
            await steps.rest()
        return things

    def _is_long_and_new(self, column: str) -> bool:
        """Return whether there are many things, nearly all there still, and many that no order by a column has."""
        order = self._orders.get(column)
        missing = len(self._codes) - (0 if order is None else order.until)
        is_new = missing > (LONG if order is None else FRESH_MAX)
        return is_new and len(self._codes) > LONG and self._dead <= FIRST_MAX

    async def _find_edge(
        self, column: Column[Thing], first: int, end: int, search: Search | None
    ) -> Found[Thing] | None:  # fmt: skip
        """Return a page near the beginning or the end of an order that is not made yet, None of another one."""
        count, dead = len(self._codes), self._dead
        hits = None
        if search is not None:
            hits = await find_hits(search, self._all_texts(), TEXT_COUNT, count)
            if dead:
                await keep_both(hits, await self._find_there(count))
        filtered = count - dead if hits is None else hits.count(1)
        end = min(end, filtered)
        is_last = end > FIRST_MAX and filtered - first <= FIRST_MAX
        if end > FIRST_MAX and not is_last:
            return None
        if is_last:  # it is a first page of the order from its other end
            column, first, end = column._replace(reverse=not column.reverse), filtered - end, filtered - first
        things: list[Thing] = []
        if first < end:
            chunks = self._chunks(column, count)
            numbers = await find_first(chunks, end + (dead if hits is None else 0), hits, reverse=column.reverse)
            if dead and hits is None:
                numbers = list(await self._choose_alive(numbers))
            things = await self._take(numbers[first:end])
        return Found(count - dead, filtered, things[::-1] if is_last else things)

    def _chunks(self, column: Column[Thing], count: int) -> Iterator[Chunk]:
        if column.name == NAME:
            return name_chunks(self._all_texts(), TEXT_COUNT, reverse=column.reverse)
        return self._figure_chunks(column, count)

    def _all_texts(self) -> list[str]:
        return [*self._texts, "\n".join(self._last)] if self._last else list(self._texts)

    def _figure_chunks(self, column: Column[Thing], count: int) -> Iterator[Chunk]:
        for first, end in walk_spans(count, FIGURES_A_STEP, reverse=column.reverse):
            yield Chunk(first, end, partial(self._figures_before, column, first, end))

    async def _figures_before(self, column: Column[Thing], first: int, end: int, bound: Any) -> list[Keyed]:  # noqa: ANN401 - as a key
        """Return what some things have in a column that stand before `bound`; what went meanwhile has nothing."""
        part, at = self._part_of(first, end)
        if part is not None and bound is not None:
            most = part.at_most(column.name, at, at + end - first)
            if most is not None and (max(most) <= bound if column.reverse else bound <= 0):
                return []
        if part is not None:
            tell = partial(part.figures, column.name)
            is_cheap = part.is_cheap(column.name)
            told = await tell_before(tell, at, first, end, bound, reverse=column.reverse, is_cheap=is_cheap)
            if told is not None:
                return told
        steps, found = Steps(), list[Keyed]()
        numbers = range(first, end) if bound is None else self._may_stand_before(column, first, end, bound)
        for at in range(0, len(numbers), LOOKS):  # each may cost all that is told of a thing
            things = ((self._thing(number), number) for number in numbers[at : at + LOOKS])
            found += [(column.key(thing), number) for thing, number in things if thing is not None]
            await steps.rest()
        if bound is None:
            return found
        if column.reverse:
            return [one for one in found if one[0] > bound]
        return [one for one in found if one[0] < bound]

    def _may_stand_before(self, column: Column[Thing], first: int, end: int, bound: Any) -> Sequence[int]:  # noqa: ANN401 - as a key
        part, at = self._part_of(first, end)
        most = None if part is None else part.at_most(column.name, at, at + end - first)
        if most is None:
            return range(first, end)
        if column.reverse:
            return [number for number, figure in enumerate(most, first) if figure > bound]
        return range(first, end if bound > 0 else first)

    def _part_of(self, first: int, end: int) -> tuple[Part[Thing] | None, int]:
        """Return the part that things are of, side by side, and the number of the first of them in it."""
        code = self._codes[first]
        if self._codes[end - 1] - code != end - 1 - first:
            return None, 0
        return self._by_index[code >> _NUMBER_BITS], code & _NUMBER_MASK

    def _thing(self, number: int) -> Thing | None:
        code = self._codes[number]
        return self._by_index[code >> _NUMBER_BITS].take(code & _NUMBER_MASK)

    def _name_of(self, number: int) -> str:
        code = self._codes[number]
        return on_a_line(self._by_index[code >> _NUMBER_BITS].name(code & _NUMBER_MASK))

    def _tell(self, column: str, numbers: Sequence[int]) -> Sequence[Any] | None:
        """Return what some things have in a column where their part tells it at once; numbers ascend."""
        first, end = numbers[0], numbers[-1] + 1
        part, at = self._part_of(first, end) if end - first <= 2 * len(numbers) else (None, 0)
        told = None if part is None else part.figures(column, at, at + end - first)
        if told is None or end - first == len(numbers):
            return told
        return [told[number - first] for number in numbers]  # some between them are gone

    def _make_name_key(self) -> Key:
        """Return a key of names that is quick where numbers ascend: of one text after the other."""
        at, names = -1, [""]

        def key_of(number: int) -> str:
            nonlocal at, names
            text = number // TEXT_COUNT
            if text != at:
                at, names = text, list(self._last) if text >= len(self._texts) else self._texts[text].split("\n")
            return names[number % TEXT_COUNT]

        return key_of

    def _key_of(self, key: Callable[[Thing], object]) -> Key:
        def key_of(number: int) -> object:
            thing = self._thing(number)
            return None if thing is None else key(thing)

        return key_of

    # What comes and goes

    async def _take_in(self) -> None:
        async with self._lock:
            alive, sources = 0, list(self.sources())
            for source in sources:
                part = self._parts.get(source)
                if part is None:
                    part = self._parts[source] = self.open(source)
                    self._by_index.append(part)
                    self._named.append(0)
            steps = Steps()
            for index, part in enumerate(self._by_index):
                for _ in part.arrivals():
                    await self._name_new(index, part, steps)
                await self._name_new(index, part, steps)  # what its last step gave numbers
                alive += part.alive()
            self._dead = max(len(self._codes) - alive, 0)
            gone = len(self._parts) - len(sources)
            self.is_worn = self._dead > max(DEAD_MIN, alive) or gone > max(DEAD_MIN, len(sources))

    async def _name_new(self, index: int, part: Part[Thing], steps: Steps) -> None:
        """Give the new things of a part their numbers here, and note their names."""
        base = index << _NUMBER_BITS
        while (first := self._named[index]) < part.size:
            end = min(first + part.names_at_once, first + TEXT_COUNT - len(self._last), part.size)
            names = part.names(first, end)
            self._codes.add(base | first, end - first)
            self._named[index] = end
            if end - first == TEXT_COUNT:
                self._texts.append(names)
            else:
                self._last += names.split("\n")
            if len(self._last) == TEXT_COUNT:
                self._texts.append("\n".join(self._last))
                self._last.clear()
            await steps.rest()
        await steps.rest()

    # Orders

    async def _find_order(self, column: str, key: Key) -> Order:
        known = self._orders.get(column)
        if known is None or self._is_old(column, known):
            task = self._begin_order(column, key)
            if known is None or known.cost_s <= WAITED_S:
                known = await asyncio.shield(task)
        if known.dead != self._dead:
            dead = self._dead
            known = known._replace(numbers=await self._choose_alive(known.numbers), dead=dead)
            self._orders[column] = known
        return known

    def _begin_order(self, column: str, key: Key) -> asyncio.Task[Order]:
        """Return what makes an order beside the questions."""
        task = self._tasks.get(column)
        if task is None:
            task = self._tasks[column] = asyncio.create_task(self._make_order(column, key), name="order")
        return task

    def _is_old(self, column: str, order: Order) -> bool:
        if len(self._codes) - order.until > FRESH_MAX:
            return True
        if column == NAME:
            return False
        if len(self._codes) <= FEW:
            return monotonic() - order.made_at_s > SHARE * order.cost_s
        return self.pace.is_due((id(self), column), order.made_at_s)

    async def _make_order(self, column: str, key: Key) -> Order:
        try:
            steps, count, dead = Steps(), len(self._codes), self._dead
            alive: Sequence[int] = range(count) if dead == 0 else await self._choose_alive(range(count), steps)
            key, tell = (self._make_name_key() if column == NAME else key), partial(self._tell, column)
            numbers = await sort_numbers(alive, key, steps, tell)
            made = Order(numbers, count, dead, monotonic(), steps.cost_s)
            if column != NAME and count > FEW:
                self.pace.note((id(self), column), made.cost_s)
            self._orders.pop(column, None)
            self._orders[column] = made
            if len(self._orders) > ORDERS_MAX:
                del self._orders[next(iter(self._orders))]
            return made
        finally:
            self._tasks.pop(column, None)

    async def _choose_alive(self, numbers: Sequence[int], steps: Steps | None = None) -> array[int]:
        steps = steps or Steps()
        if len(numbers) > FIRST_MAX:
            return await choose(numbers, await self._find_there(len(self._codes), steps), TEXT_COUNT, steps)
        alive = array("i")
        for looked, number in enumerate(numbers):
            if self._thing(number) is not None:
                alive.append(number)
            if looked % 64 == 0:
                await steps.rest()
        return alive

    async def _find_there(self, count: int, steps: Steps | None = None) -> bytearray:
        """Return for each number below `count` whether its thing is there."""
        steps, there = steps or Steps(), bytearray()
        for first, end in walk_spans(count, THERE_A_STEP, reverse=False):
            part, at = self._part_of(first, end)
            if part is None:
                there += bytes([self._thing(number) is not None for number in range(first, end)])
            else:
                there += part.there(at, at + end - first)
            await steps.rest()
        return there

"""A long list that is kept between two questions: what came since is taken in, and orders are kept by column.

Of each thing it has a number, in the order they came, and its name; figures are asked of the thing itself when it is
shown. An order of many by a figure is made anew every few seconds, so seldom that all such orders take a hundredth of
the time; an order by name is never old: what came since stands in its place in it. Until there is an order of many, a
page of it is found by itself, while the order is made beside.

Source: docs/decisions/0057-lists-kept-sorted.md, docs/decisions/0085-names-beside-queues.md.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from array import array
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from gateway.admin.pace import Pace
from gateway.admin.rosters import members
from gateway.admin.rosters.chunks import Chunks
from gateway.admin.rosters.column import NAME, Column
from gateway.admin.rosters.first_page import find_first
from gateway.admin.rosters.kept_hits import KeptHits
from gateway.admin.rosters.members import Members
from gateway.admin.rosters.merged_rows import slice_rows
from gateway.admin.rosters.middle_page import find_middle
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.searching import Search, choose, choose_end, keep_both
from gateway.admin.rosters.sorting import Key, sort_numbers
from gateway.admin.rosters.weakly import weakly
from gateway.admin.steps import PatientSteps

WAITED_S = 0.05  # an order that costs more is made anew beside the questions, which go by the old one
SHARE = 20  # an order of few by a figure is used for so many times what it cost
FEW = 4_000  # things: their order costs 10 ms at most
FRESH_MAX = 2_000  # things that came since an order was made, before it is made anew; chosen: each page looks at them
LONG = 10_000  # things; of more a page is found before all are in order
FIRST_MAX = 2_000  # things up to the end of a page that is found as a first one
ORDERS_MAX = 8  # columns; the one that was made longest ago goes
IDLE_S = 60.0  # without a question, then the list is forgotten
Thing = TypeVar("Thing")
Source = TypeVar("Source", bound=Hashable)


class Order(NamedTuple):
    """All things that there were at a moment, by one column."""

    numbers: array[int]
    until: int  # the first number that came later
    dead: int  # things that were known to be gone
    made_at_s: float
    cost_s: float  # the processor's time


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
        self._tasks: dict[str, asyncio.Task[Order]] = {}
        self._all: Members[Source, Thing] = Members(weakly(self.sources), weakly(self.open), weakly(self.changes))
        self._orders: dict[str, Order] = {}
        self._hits = KeptHits()

    @property
    def is_worn(self) -> bool:
        """Return whether the next question is better asked of a new one."""
        return self._all.is_worn

    @abstractmethod
    def sources(self) -> Iterable[Source | None]:
        """Give where things come from now; None is a look in vain."""

    def changes(self) -> object:
        """Return something else once a thing or a source came or went; None: that is not known.

        Parts that may have other numbers for their things some day are looked at each time.
        """
        return None

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
        await self._all.take_in()
        if self._is_long_and_new(column.name):
            with self.pace.asking():
                found = await self._find_page(column, max(first, 0), end, search)
            if found is not None:
                if len(self._tasks) < ORDERS_MAX:  # else one that asks for ever other columns has no end of them made
                    self._begin_order(column)
                return found
        order = await self._find_order(column)
        count, dead, key_of = len(self._all), self._all.dead, self._key_of(column)
        numbers: Sequence[int] = order.numbers
        fresh: Sequence[int] = range(order.until, count)
        wanted, hits, passed = len(numbers), None, 0
        if search is not None:
            hits = await self._hits.find(search, self._all.texts, members.TEXT_COUNT, count)
            fresh = await choose(fresh, hits, members.TEXT_COUNT)
            if wanted == order.until and dead == 0:
                wanted = hits.count(1, 0, order.until)
            else:  # some of those that are marked are gone
                numbers, hits = await choose(numbers, hits, members.TEXT_COUNT), None
                wanted = len(numbers)
        fresh = await sort_numbers(fresh if dead == 0 else await self._all.choose_alive(fresh), key_of)
        filtered = wanted + len(fresh)
        low, high = min(max(first, 0), filtered), max(min(end, filtered), 0)
        if column.reverse:
            low, high = filtered - high, filtered - low
        if hits is not None:
            is_last = high > filtered - low
            need = filtered - low if is_last else high
            numbers = await choose_end(numbers, hits, members.TEXT_COUNT, need, is_last=is_last)
            passed = wanted - len(numbers) if is_last else 0
        things = await self._all.take(await slice_rows(numbers, fresh, key_of, low - passed, high - passed))
        return Found(count - dead, filtered, things[::-1] if column.reverse else things)

    def _key_of(self, column: Column[Thing]) -> Key:
        return self._all.name_of if column.name == NAME else self._all.figure_key(column.key)

    # Pages of orders that are not made yet

    def _is_long_and_new(self, column: str) -> bool:
        """Return whether there are many things, and many that no order by a column has."""
        order, count = self._orders.get(column), len(self._all)
        missing = count - (0 if order is None else order.until)
        return missing > (LONG if order is None else FRESH_MAX) and count > LONG

    async def _find_page(
        self, column: Column[Thing], first: int, end: int, search: Search | None
    ) -> Found[Thing] | None:  # fmt: skip
        """Return a page of an order that is not made yet, None where it is not found without it."""
        count, dead, texts = len(self._all), self._all.dead, self._all.texts
        hits = None
        if search is not None:
            hits = await self._hits.find(search, texts, members.TEXT_COUNT, count)
        if dead:
            there = (await self._all.find_there())[:count]
            if hits is None:
                hits = there
            else:
                await keep_both(hits, there)
        filtered = count if hits is None else hits.count(1)
        total = count - dead
        first, end = min(first, filtered), min(end, filtered)
        if first == end:
            return Found(total, filtered, [])
        low, high = (filtered - end, filtered - first) if column.reverse else (first, end)  # places from the least on
        chunks = Chunks(self._all, column, count, texts)
        if min(high, filtered - low) <= FIRST_MAX:
            is_last = high > filtered - low
            need = filtered - low if is_last else high
            numbers = await find_first(chunks.walk(reverse=is_last), need, hits, reverse=is_last)
            numbers = numbers[::-1][: high - low] if is_last else numbers[low:]
        elif high - low > FIRST_MAX:
            return None
        elif filtered <= LONG:
            assert hits is not None
            wanted = await choose(range(count), hits, members.TEXT_COUNT)
            numbers = list((await sort_numbers(wanted, self._key_of(column)))[low:high])
        else:
            tell = partial(self._all.tell_scattered, column.name)
            walk = chunks.walk(reverse=False)
            found = await find_middle(walk, self._key_of(column), hits, low, high, filtered, tell)
            if found is None:
                return None
            numbers = found
        things = await self._all.take(numbers)
        return Found(total, filtered, things[::-1] if column.reverse else things)

    # Orders

    async def _find_order(self, column: Column[Thing]) -> Order:
        name = column.name
        known = self._orders.get(name)
        if known is None or self._is_old(name, known):
            task = self._begin_order(column)
            if known is None or known.cost_s <= WAITED_S:
                known = await asyncio.shield(task)
        if known.dead != self._all.dead:
            dead = self._all.dead
            known = known._replace(numbers=await self._all.choose_alive(known.numbers), dead=dead)
            self._orders[name] = known
        return known

    def _begin_order(self, column: Column[Thing]) -> asyncio.Task[Order]:
        """Return what makes an order beside the questions."""
        task = self._tasks.get(column.name)
        if task is None:
            task = self._tasks[column.name] = asyncio.create_task(self._make_order(column), name="order")
        return task

    def _is_old(self, column: str, order: Order) -> bool:
        if len(self._all) - order.until > FRESH_MAX:
            return True
        if column == NAME:
            return False
        if len(self._all) <= FEW:
            return monotonic() - order.made_at_s > SHARE * order.cost_s
        return self.pace.is_due((id(self), column), order.made_at_s)

    async def _make_order(self, column: Column[Thing]) -> Order:
        name = column.name
        try:
            steps, count, dead = PatientSteps(self.pace.is_asked), len(self._all), self._all.dead
            alive: Sequence[int] = range(count) if dead == 0 else await self._all.choose_alive(range(count), steps)
            key = self._all.name_key() if name == NAME else self._key_of(column)
            numbers = await sort_numbers(alive, key, steps, partial(self._all.tell, name))
            made = Order(numbers, count, dead, monotonic(), steps.cost_s)
            if name != NAME and count > FEW:
                self.pace.note((id(self), name), made.cost_s)
            self._orders.pop(name, None)
            self._orders[name] = made
            if len(self._orders) > ORDERS_MAX:
                del self._orders[next(iter(self._orders))]
            return made
        finally:
            self._tasks.pop(name, None)

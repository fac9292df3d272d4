"""Lists as RabbitMQ's API answers them: in pages, sorted, filtered, and with some columns only; made in steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import merge
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from fastapi import Query, Response
from pydantic import BaseModel, Field

from gateway.admin.management.failures import bad_request
from gateway.admin.steps import LOOKS, Steps, walk

PAGE_SIZE = 100
PAGE_SIZE_MAX = 500
RUN_LENGTH = 2_048  # sorted in one go, about a millisecond
JSON = "application/json"
Thing = TypeVar("Thing")
Item = dict[str, Any]


class Question(BaseModel, frozen=True):
    """What of a list is asked for: without `page` all of it; `columns` are names with commas between them."""

    page: Annotated[int | None, Field(ge=1, le=1_000_000)] = None
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE_MAX)] = PAGE_SIZE
    name: Annotated[str, Field(max_length=1_000)] = ""
    use_regex: bool = False
    sort: Annotated[str, Field(max_length=200)] = ""
    sort_reverse: bool = False
    columns: Annotated[str, Field(max_length=4_000)] = ""

    def pick(self, item: Item) -> Item:
        """Return the columns that are asked for of an item, all of it where none are."""
        return pick(item, self.columns.split(",")) if self.columns else item


Asked = Annotated[Question, Query()]


class Kind(NamedTuple, Generic[Thing]):
    """How things of a kind are told."""

    name: Callable[[Thing], str]  # what they are sorted by and searched for
    describe: Callable[[Thing], Item]
    figures: Mapping[str, Callable[[Thing], Any]] = {}  # columns that are sorted by without telling all of a thing


async def answer_list(asked: Question, kind: Kind[Thing], things: Iterable[Thing | None]) -> Response:
    """Return what is asked for of `things`, which are walked in steps.

    Raises:
        HTTPException: 400: A regular expression is asked for, whose time nothing would bound.
    """
    matches = _matcher(asked)
    total = 0
    found: list[Thing] = []
    async for thing in walk(things):
        total += 1
        if matches is None or matches(kind.name(thing)):
            found.append(thing)
    if asked.page is None:
        return Response(await _write(asked, kind, await _sort(asked, kind, found, len(found))), media_type=JSON)
    end = asked.page * asked.page_size
    shown = (await _sort(asked, kind, found, end))[end - asked.page_size : end]
    head = {
        "total_count": total,
        "filtered_count": len(found),
        "page": asked.page,
        "page_size": asked.page_size,
        "page_count": -(-len(found) // asked.page_size),
        "item_count": len(shown),
    }
    items = await _write(asked, kind, shown)
    return Response(json.dumps(head)[:-1] + f', "items": {items}}}', media_type=JSON)


def _matcher(asked: Question) -> Callable[[str], bool] | None:
    if not asked.name:
        return None
    if asked.use_regex:
        raise bad_request("names are searched for by a part of them: use_regex is not supported")
    lowered = asked.name.lower()
    return lambda name: lowered in name.lower()


async def _sort(asked: Question, kind: Kind[Thing], found: list[Thing], end: int) -> list[Thing]:
    """Return the first `end` of what was found, in the order that is asked for: by runs, which are merged."""
    key = _key_of(asked.sort, kind)
    steps = Steps()
    runs: list[list[tuple[Any, int]]] = [[]]
    for number, thing in enumerate(found):
        run = runs[-1]
        run.append((key(thing), number))
        if number % LOOKS == 0:
            await steps.rest()
        if len(run) == RUN_LENGTH:
            run.sort(reverse=asked.sort_reverse)
            runs.append([])
    runs[-1].sort(reverse=asked.sort_reverse)
    if len(runs) == 1:
        return [found[number] for _, number in runs[0][:end]]
    ordered: list[Thing] = []
    async for _, number in walk(merge(*runs, reverse=asked.sort_reverse)):
        ordered.append(found[number])
        if len(ordered) >= end:
            break
    return ordered


def _key_of(column: str, kind: Kind[Thing]) -> Callable[[Thing], tuple[int, Any]]:
    """Return what a thing is sorted by: nothing before numbers, and those before words."""
    if column in {"", "name"}:
        return lambda thing: (2, kind.name(thing))
    figure = kind.figures.get(column)
    if figure is not None:
        return lambda thing: _rank(figure(thing))
    path = column.split(".")
    return lambda thing: _rank(dig(kind.describe(thing), path))


def _rank(value: object) -> tuple[int, Any]:
    if value is None or isinstance(value, dict | list):
        return (0, 0)
    return (1, value) if isinstance(value, int | float) else (2, str(value))


def dig(item: object, path: Sequence[str]) -> object:
    """Return what is at a path of names in an item, None where there is nothing."""
    for name in path:
        if not isinstance(item, dict):
            return None
        item = item.get(name)
    return item


def pick(item: Item, columns: Iterable[str]) -> Item:
    """Return these columns of an item; a dot leads into an object."""
    picked: Item = {}
    for column in columns:
        *outer, last = column.split(".")
        holder = dig(item, outer)
        if isinstance(holder, dict) and last in holder:
            node = picked
            for name in outer:
                node = node.setdefault(name, {})
            node[last] = holder[last]
    return picked


async def _write(asked: Question, kind: Kind[Thing], things: Iterable[Thing]) -> str:
    texts = [json.dumps(asked.pick(kind.describe(thing))) async for thing in walk(things)]
    return f"[{', '.join(texts)}]"

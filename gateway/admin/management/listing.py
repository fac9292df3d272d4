"""Lists as RabbitMQ's API answers them: in pages, sorted, filtered, and with some columns only; made in steps."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import islice
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from fastapi import Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from pydantic_core import PydanticSerializationError, to_json

from gateway.admin.management.failures import bad_request, out_of_range
from gateway.admin.rosters.column import NAME, Column
from gateway.admin.rosters.roster import Roster
from gateway.admin.rosters.searching import Search
from gateway.admin.steps import Steps, let_go, walk, walk_chunks
from gateway.line_sets import compile_line_set
from gateway.regex import compile_lines, compile_regex, is_everywhere, split_looks

PAGE_SIZE = 100  # RabbitMQ's
PAGE_SIZE_MAX = 500  # RabbitMQ's
SHORT = 2_000  # items up to the end of a page that are kept while the rest goes by
AT_ONCE_BYTES = 256 * 1024  # of an answer that is made and sent in one part; chosen: some 0.2 ms
JSON = "application/json"
EVERYTHING = 1 << 62
STANDING = {"rate": 0.0}  # of most queues and exchanges
NOTHING_BESIDE: Mapping[str, Any] = {}
DESCRIBED = "described "  # before the name of an order by what is found in a whole description
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

    def sorted_by(self, column: str, *, reverse: bool = False) -> Question:
        """Return this question, with an order where it has none."""
        return self if self.sort else self.model_copy(update={"sort": column, "sort_reverse": reverse})

    def pick(self, item: Item) -> Item:
        """Return the columns that are asked for of an item, all of it where none are."""
        return pick(item, self.columns.split(",")) if self.columns else item


Asked = Annotated[Question, Query()]


class Kind(NamedTuple, Generic[Thing]):
    """How things of a kind are told."""

    name: Callable[[Thing], str]  # what they are sorted by and searched for
    describe: Callable[[Thing], Item]
    figures: Mapping[str, Callable[[Thing], Any]] = {}  # columns that are told without telling all of a thing: words
    #                                                     or numbers, of a list that is kept no other thing
    find_key: Callable[[str], Callable[[Thing], Any] | None] | None = None
    """Says what things of a list that is kept are sorted by in a column, where that is none of the figures, or other
    than told; None where no thing has such a column. Where this is not given, all of each thing is told to find out."""
    write: Callable[[Thing], bytes] | None = None
    """Returns as text what `describe` tells of a thing on a page; None: it is written each time."""


class Beside(NamedTuple):
    """What is told beside a list, which is part of an object then: under `key`, of a page under `items`."""

    facts: Item  # at least one
    key: str = "items"
    count_max: int = EVERYTHING  # where no page is asked for


async def answer_list(
    asked: Question, kind: Kind[Thing], things: Iterable[Thing | None], beside: Beside | None = None
) -> Response:
    """Return what is asked for of `things`, which are walked in steps.

    Raises:
        HTTPException: 400: `name` is no regular expression, or the page is past the end.
    """
    matches = _matcher(asked)
    total = 0
    found: list[Thing] = []
    async for chunk in walk_chunks(things):
        there = [thing for thing in chunk if thing is not None]
        total += len(there)
        found += there if matches is None else [thing for thing in there if matches(kind.name(thing))]
    if asked.page is None:
        count = len(found) if beside is None else min(len(found), beside.count_max)
        ordered = await _sort(asked, kind, found, count)
        parts = deque([part async for part in _stream(asked, kind, ordered)])
        if beside is not None:
            parts.appendleft(b'%b,"%b":' % (encode(beside.facts)[:-1], beside.key.encode()))
            parts.append(b"}")
        answer = _answer_all(parts)
    else:
        end = asked.page * asked.page_size
        shown = (await _sort(asked, kind, found, end))[end - asked.page_size :]
        facts = NOTHING_BESIDE if beside is None else beside.facts
        answer = await _answer_page(asked, kind, shown, total, len(found), facts)
    await let_go(found)
    return answer


async def answer_kept(asked: Question, kind: Kind[Thing], roster: Roster[Any, Thing]) -> Response:
    """Return what is asked for of a long list that is kept; all of it goes out as it is told.

    Raises:
        HTTPException: 400: `name` is no regular expression, or the page is past the end.
    """
    matches = _matcher(asked)
    search = None if matches is None else _make_search(asked, matches)
    column = _find_column(asked, kind)
    first, end = 0, EVERYTHING
    if asked.page is not None:
        first, end = (asked.page - 1) * asked.page_size, asked.page * asked.page_size
    found = await roster.find(column, first, end, search)
    if asked.page is None:
        return StreamingResponse(_stream(asked, kind, found.things), media_type=JSON)
    return await _answer_page(asked, kind, found.things, found.total, found.filtered)


def _find_column(asked: Question, kind: Kind[Thing]) -> Column[Thing]:
    """Return the column of a kept list that is asked for; by one that no thing has they stay sorted by name."""
    name = asked.sort or NAME
    key = None if kind.find_key is None else kind.find_key(name)
    key = key or kind.figures.get(name)
    if key is None and kind.find_key is not None:
        name, key = NAME, kind.name
    if key is not None:
        return Column(name, key, asked.sort_reverse)
    key = _key_of(name, kind)  # it may be another list's column, with other keys
    return Column(name if name == NAME else DESCRIBED + name, key, asked.sort_reverse)


async def _stream(asked: Question, kind: Kind[Thing], things: list[Thing]) -> AsyncIterator[bytes]:
    steps = Steps()  # a part alone is too quick for a rest
    yield b"["
    for at in range(0, len(things), PAGE_SIZE):
        part = await _write(asked, kind, things[at : at + PAGE_SIZE])
        yield (b"," if at else b"") + part[1:-1]
        await steps.rest()
    yield b"]"
    await let_go(things)


def _answer_all(parts: deque[bytes]) -> Response:
    """Answer with what is written, in parts where it is much: 20 MB in one take 20 ms to be made, and 10 to be sent."""
    size = sum(map(len, parts))
    if size <= AT_ONCE_BYTES:
        return Response(b"".join(parts), media_type=JSON)
    return StreamingResponse(_give(parts), headers={"content-length": str(size)}, media_type=JSON)


async def _give(parts: deque[bytes]) -> AsyncIterator[bytes]:
    steps = Steps()
    while parts:
        yield parts.popleft()
        await steps.rest()


async def _answer_page(
    asked: Question,
    kind: Kind[Thing],
    shown: Sequence[Thing],
    total: int,
    filtered: int,
    facts: Mapping[str, Any] = NOTHING_BESIDE,
) -> Response:
    assert asked.page is not None
    if (asked.page - 1) * asked.page_size > filtered:
        raise out_of_range(asked.page, asked.page_size, filtered)
    head = {
        **facts,
        "total_count": total,
        "filtered_count": filtered,
        "page": asked.page,
        "page_size": asked.page_size,
        "page_count": -(-filtered // asked.page_size),
        "item_count": len(shown),
    }
    items = await _write(asked, kind, shown)
    return Response(b'%b,"items":%b}' % (encode(head)[:-1], items), media_type=JSON)


def _matcher(asked: Question) -> Callable[[str], object] | None:
    if not asked.name:
        return None
    if asked.use_regex:
        try:
            compiled = compile_regex(asked.name)
        except ValueError as error:
            raise bad_request(f"name {error}") from error
        return None if is_everywhere(asked.name, compiled) else compiled.search
    lowered = asked.name.lower()
    return lambda name: lowered in name.lower()


def _make_search(asked: Question, matches: Callable[[str], object]) -> Search:
    if not asked.use_regex:
        return Search(matches, asked.name.lower())
    rest, looks = split_looks(asked.name)
    parts = [(_search_lines(look, matches), is_wanted) for look, is_wanted in looks]
    if any(part.lines is None for part, _ in parts) or compile_lines(rest) is None:
        return Search(matches, pattern=asked.name)
    return _search_lines(rest, matches)._replace(pattern=asked.name, looks=parts)


def _search_lines(text: str, matches: Callable[[str], object]) -> Search:
    return Search(matches, "", compile_lines(text), partial(compile_line_set, text))


async def _sort(asked: Question, kind: Kind[Thing], found: list[Thing], end: int) -> list[Thing]:
    """Return the first `end` of what was found, in the order that is asked for.

    A first page is kept while the rest goes by; what is more than that is sorted by runs, which are merged.
    """
    key = _key_of(asked.sort, kind)
    reverse = asked.sort_reverse
    first: list[tuple[Any, int]] = []  # sorted
    runs: list[list[tuple[Any, int]]] = []
    is_short = end <= SHORT and end < len(found)
    number = 0
    async for chunk in walk_chunks(found):
        run = list(zip(map(key, chunk), range(number, number + len(chunk)), strict=True))
        number += len(chunk)
        if not is_short:
            run.sort(reverse=reverse)
            runs.append(run)
            continue
        if len(first) == end:
            bound = first[-1]
            run = [one for one in run if one > bound] if reverse else [one for one in run if one < bound]
        if run:
            first = sorted(first + run, reverse=reverse)[:end]
    if is_short:
        return [found[number] for _, number in first]
    if len(runs) == 1:
        return [found[number] for _, number in runs[0][:end]]
    ordered: list[Thing] = []
    async for part in walk_chunks(islice(merge(*runs, reverse=reverse), end)):
        ordered += [found[number] for _, number in part]
    await let_go(runs)
    return ordered


def _key_of(column: str, kind: Kind[Thing]) -> Callable[[Thing], Any]:
    """Return what says of a thing what it is sorted by."""
    if column in {"", "name"}:
        return kind.name
    figure = kind.figures.get(column)
    if figure is not None:
        return lambda thing: rank(figure(thing))
    path = column.split(".")
    return lambda thing: rank(dig(kind.describe(thing), path))


def rank(value: object) -> tuple[int, Any]:
    """Return what a value is sorted by: nothing and what is no word or number, numbers, words."""
    if isinstance(value, int | float):
        return (1, value)
    return (0, 0) if value is None or isinstance(value, dict | list) else (2, str(value))


def dig(item: object, path: Sequence[str]) -> object:
    """Return what is at a path of names in an item, None where there is nothing."""
    for name in path:
        if not isinstance(item, dict):
            return None
        item = item.get(name)
    return item


def tell_rate(messages_s: float) -> Item:
    """Return a rate as RabbitMQ tells it beside a count."""
    return {"rate": round(messages_s, 1)} if messages_s else STANDING


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


async def _write(asked: Question, kind: Kind[Thing], things: Iterable[Thing]) -> bytes:
    columns = asked.columns.split(",") if asked.columns else []
    if kind.write is not None and not columns and asked.page is not None:
        return b"[%b]" % b",".join([kind.write(thing) async for thing in walk(things)])
    known = {"name": kind.name, **kind.figures}
    figures = [(column, known.get(column)) for column in columns]
    quick = [(column, figure) for column, figure in figures if figure is not None and "." not in column]
    if not columns or len(quick) < len(columns):
        texts = [encode(asked.pick(kind.describe(thing))) async for thing in walk(things)]
    else:  # nothing else of a thing is to be found out
        texts = [encode({column: figure(thing) for column, figure in quick}) async for thing in walk(things)]
    return b"[%b]" % b",".join(texts)


def encode(item: Item) -> bytes:
    """Return JSON, in a quarter of the time that `json` takes, which also writes text that is no Unicode."""
    try:
        return to_json(item)
    except PydanticSerializationError:
        return json.dumps(item).encode()

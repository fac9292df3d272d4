"""Which of many names are wanted, found in their long texts in steps."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gateway.admin.rosters.spans import walk_spans
from gateway.admin.steps import Steps
from gateway.line_sets import LINES, LineSet
from gateway.regex import Lines

HITS_A_STEP = 64  # lines that an expression is found in, of which each costs some microseconds
BYTES_A_STEP = 2_048  # of lines, and the rest of one: the costliest expressions take up to 3 us for each byte
FLAGS_A_STEP = 4_096  # of a byte each, looked at in one go
MANY_HITS = 128  # of a word in one text, from which on it is quicker to look at each name of it
DENSE = 20  # one name of so many has an expression: from there on it is quicker to look at some at once
SHORT = 480  # bytes of pieces of which `SHORT_A_STEP` are looked at in one step, longer ones singly
SHORT_A_STEP = 4  # pieces of `LINES` lines, at most 0.6 ms each, of the costliest expression
DEAR_S = 0.008  # of the processor for one text: twice what it costs to be told each place that is found


class Search(NamedTuple):
    """Which names are wanted."""

    matches: Callable[[str], object]
    word: str = ""  # in lower case: all names that have it are wanted, and no others; empty: `matches` says it
    lines: Lines | None = None  # says what `matches` says of many names at once
    at_once: Callable[[], LineSet | None] | None = None  # compiles what says the same where many names are found
    pattern: str = ""  # equal searches without a word have the same; empty: this is like no other
    looks: Sequence[tuple[Search, bool]] = ()
    """What else names have to have, or must not; only beside `lines`, which say only the rest of it then."""


async def find_hits(search: Search, texts: Sequence[str], text_count: int, count: int) -> bytearray:
    """Return for each number below `count` whether its name is wanted.

    Args:
        search: Which are.
        texts: Names in the order of their numbers, with line breaks between them.
        text_count: How many names each text has, but for the last one, which may have more than `count` says.
        count: How many there are.
    """
    steps, hits = Steps(), bytearray(count)
    marker = None if search.lines is None else _Marker(search.lines, search.at_once)
    for number, text in zip(itertools.count(0, text_count), texts, strict=False):
        if search.word:
            _mark_lines(text.lower(), search.word, hits, number)
            await steps.rest()
        elif marker is not None:
            await marker.mark(text.encode(errors="replace"), hits, number, text_count, steps)
        else:
            for one, name in enumerate(text.split("\n"), number):
                if one < count and search.matches(name):
                    hits[one] = 1
                if one % 64 == 0:
                    await steps.rest()
    for look, is_wanted in search.looks:
        await keep_both(hits, await find_hits(look, texts, text_count, count), is_wanted=is_wanted)
    return hits


class _Marker:
    """Marks lines that an expression is found in, some at once from where many have it.

    Args:
        lines: The expression.
        compile_set: Returns it for some lines at once; None where that would take too long.
    """

    def __init__(self, lines: Lines, compile_set: Callable[[], LineSet | None] | None) -> None:
        self._lines = lines
        self._compile_set = compile_set
        self._set: LineSet | None = None
        self._is_dense = False

    async def mark(self, data: bytes, hits: bytearray, number: int, text_count: int, steps: Steps) -> None:
        """Mark the lines of a text, of which the first one has that number."""
        if self._is_dense and self._set is None and self._compile_set is not None:
            self._set, self._compile_set = self._compile_set(), None
        line_set = self._set if self._is_dense else None
        if line_set is None or not await self._mark_pieces(line_set, data, hits, number, steps):
            await _mark_found(data, self._lines, hits, number, steps)
        found = hits.count(1, number, number + text_count)
        is_told = found >= text_count and self._lines.tells_all  # it is known at once where all have it
        self._is_dense |= found > text_count // DENSE and not is_told  # for good: sorted names may have it by turns

    async def _mark_pieces(self, line_set: LineSet, data: bytes, hits: bytearray, number: int, steps: Steps) -> bool:
        """Mark the lines of a text; return False where that would take too long, or too much memory."""
        pieces, began_s = line_set.split(data), steps.cost_s
        longest = max(map(len, pieces))
        if longest > BYTES_A_STEP:
            return False
        at_once = SHORT_A_STEP if longest <= SHORT else 1
        marks = bytearray(LINES * len(pieces))
        for at, piece in enumerate(pieces):
            found = line_set.find(piece)
            if found is None:
                self._set = None
                return False
            for line in found:
                if line < LINES:
                    marks[LINES * at + line] = 1
            if at % at_once == 0:
                await steps.rest()
        count = min(data.count(b"\n") + 1, len(hits) - number)
        hits[number : number + count] = marks[:count]
        if steps.cost_s - began_s > DEAR_S:  # it has too many states: each is made anew
            self._set = None
        return True


def _mark_lines(text: str, word: str, hits: bytearray, number: int) -> None:
    """Mark the lines of a text that have a word; the first one has that number."""
    if "\n" not in word and text.count(word) > MANY_HITS:
        names = text.split("\n")[: len(hits) - number]
        hits[number : number + len(names)] = bytes([word in name for name in names])
        return
    at, pos = 0, -1 if "\n" in word else text.find(word)
    while pos >= 0:
        number += text.count("\n", at, pos)
        if number < len(hits):
            hits[number] = 1
        at = text.find("\n", pos)
        pos = -1 if at < 0 else text.find(word, at)


async def _mark_found(data: bytes, lines: Lines, hits: bytearray, number: int, steps: Steps) -> None:
    """Mark the lines of a text that an expression is found in; the first one has that number."""
    begin = 0
    while begin <= len(data):
        end = data.find(b"\n", begin + BYTES_A_STEP)
        piece = data[begin:] if end < 0 else data[begin:end]
        begin += len(piece) + 1
        if lines.are_all(piece):
            following = min(number + piece.count(b"\n") + 1, len(hits))
            hits[number:following] = b"\1" * (following - number)
            number = following
            await steps.rest()
            continue
        await steps.rest()
        at, line = 0, number
        for found, pos in enumerate(lines.find(piece), 1):
            line += piece.count(b"\n", at, pos)
            if line < len(hits):
                hits[line] = 1
            at = pos
            if found % HITS_A_STEP == 0:
                await steps.rest()
        number += piece.count(b"\n") + 1
        await steps.rest()


async def choose(numbers: Sequence[int], hits: bytearray, at_once: int, steps: Steps | None = None) -> array[int]:
    """Return those of some numbers that are marked, some in each step."""
    steps, chosen = steps or Steps(), array("i")
    for at in range(0, len(numbers), at_once):
        some = numbers[at : at + at_once]
        chosen.extend(itertools.compress(some, map(hits.__getitem__, some)))
        await steps.rest()
    return chosen


async def choose_end(
    numbers: Sequence[int], hits: bytearray, at_once: int, need: int, *, is_last: bool
) -> array[int]:  # fmt: skip
    """Return the first of those that are marked, or the last ones, in their order.

    Args:
        numbers: What is chosen from.
        hits: The marks.
        at_once: How many are looked at in a step.
        need: How many are wanted; more may come, and fewer where there are no more.
        is_last: Whether they are the last ones.
    """
    steps, count = Steps(), 0
    chosen: list[array[int]] = []
    for first, end in walk_spans(len(numbers), at_once, reverse=is_last):
        if count >= need:
            break
        some = numbers[first:end]
        chosen.append(array("i", itertools.compress(some, map(hits.__getitem__, some))))
        count += len(chosen[-1])
        await steps.rest()
    found = array("i")
    for part in reversed(chosen) if is_last else chosen:
        found.extend(part)
    return found


async def keep_both(hits: bytearray, others: bytearray, *, is_wanted: bool = True) -> None:
    """Leave of some marks only those that others have, too, or that others do not have."""
    steps = Steps()
    for at in range(0, len(hits), FLAGS_A_STEP):
        some, end = int.from_bytes(hits[at : at + FLAGS_A_STEP], "little"), min(at + FLAGS_A_STEP, len(hits))
        both = some & int.from_bytes(others[at:end], "little")
        hits[at:end] = (both if is_wanted else some ^ both).to_bytes(end - at, "little")
        await steps.rest()

"""Which of many names are wanted, found in their long texts in steps."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import and_
from typing import NamedTuple

from gateway.admin.steps import Steps
from gateway.regex import Lines

HITS_A_STEP = 64  # lines that an expression is found in, of which each costs some microseconds
BYTES_A_STEP = 2_048  # of lines, and the rest of one: the costliest expressions take up to 3 us for each byte
FLAGS_A_STEP = 4_096  # of a byte each, looked at in one go
MANY_HITS = 128  # of a word in one text, from which on it is quicker to look at each name of it


class Search(NamedTuple):
    """Which names are wanted."""

    matches: Callable[[str], object]
    word: str = ""  # in lower case: all names that have it are wanted, and no others; empty: `matches` says it
    lines: Lines | None = None  # says what `matches` says of many names at once


async def find_hits(search: Search, texts: Iterable[str], text_count: int, count: int) -> bytearray:
    """Return for each number below `count` whether its name is wanted.

    Args:
        search: Which are.
        texts: Names in the order of their numbers, with line breaks between them.
        text_count: How many names each text has, but for the last one, which may have more than `count` says.
        count: How many there are.
    """
    steps, hits = Steps(), bytearray(count)
    for at, text in enumerate(texts):
        if search.word:
            _mark_lines(text.lower(), search.word, hits, at * text_count)
            await steps.rest()
            continue
        if search.lines is not None:
            await _mark_found(text, search.lines, hits, at * text_count, steps)
            continue
        for number, name in enumerate(text.split("\n"), at * text_count):
            if number < count and search.matches(name):
                hits[number] = 1
            if number % 64 == 0:
                await steps.rest()
    return hits


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


async def _mark_found(text: str, lines: Lines, hits: bytearray, number: int, steps: Steps) -> None:
    """Mark the lines of a text that an expression is found in; the first one has that number."""
    data, begin = text.encode(errors="replace"), 0
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
        chosen.extend(compress(some, map(hits.__getitem__, some)))
        await steps.rest()
    return chosen


async def keep_both(hits: bytearray, others: bytearray) -> None:
    """Leave of some marks only those that others have, too."""
    steps = Steps()
    for at in range(0, len(hits), FLAGS_A_STEP):
        end = at + FLAGS_A_STEP
        hits[at:end] = bytes(map(and_, hits[at:end], others[at:end]))
        await steps.rest()

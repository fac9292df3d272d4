"""Which of many names are wanted, found in their long texts in steps."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Iterable, Sequence
from operator import and_
from typing import NamedTuple

from gateway.admin.steps import Steps
from gateway.plain_regex import NAME_MAX
from gateway.regex import Lines

HITS_A_STEP = 64  # lines that an expression is found in, of which each costs some microseconds
BYTES_A_STEP = 2_048  # of lines, and the rest of one: the costliest expressions take up to 3 us for each byte
FLAGS_A_STEP = 4_096  # of a byte each, looked at in one go
MANY_HITS = 128  # of a word in one text, from which on it is quicker to look at each name of it
DENSE = 20  # one name of so many has an expression: from there on it is quicker to look at each by itself
SHORT = 48  # characters of names of which `SHORT_A_STEP` are looked at by themselves in one step, longer ones singly
SHORT_A_STEP = 64  # at most 30 us each, of the costliest expression


class Search(NamedTuple):
    """Which names are wanted."""

    matches: Callable[[str], object]
    word: str = ""  # in lower case: all names that have it are wanted, and no others; empty: `matches` says it
    lines: Lines | None = None  # says what `matches` says of many names at once
    plain: Callable[[str], object] | None = None  # says the same of one that is not long, at a tenth of the cost
    pattern: str = ""  # equal searches without a word have the same; empty: this is like no other


async def find_hits(search: Search, texts: Iterable[str], text_count: int, count: int) -> bytearray:
    """Return for each number below `count` whether its name is wanted.

    Args:
        search: Which are.
        texts: Names in the order of their numbers, with line breaks between them.
        text_count: How many names each text has, but for the last one, which may have more than `count` says.
        count: How many there are.
    """
    steps, hits = Steps(), bytearray(count)
    is_dense = False
    for number, text in zip(itertools.count(0, text_count), texts, strict=False):
        if search.word:
            _mark_lines(text.lower(), search.word, hits, number)
            await steps.rest()
        elif is_dense and search.plain is not None and await _mark_plain(text, search.plain, hits, number, steps):
            is_dense = _is_dense(hits, number, text_count)
        elif search.lines is not None:
            await _mark_found(text, search.lines, hits, number, steps)
            is_dense = _is_dense(hits, number, text_count)
        else:
            for one, name in enumerate(text.split("\n"), number):
                if one < count and search.matches(name):
                    hits[one] = 1
                if one % 64 == 0:
                    await steps.rest()
    return hits


def _is_dense(hits: bytearray, number: int, text_count: int) -> bool:
    """Return whether many names of a text were found, but not all, which is known at once."""
    return text_count // DENSE < hits.count(1, number, number + text_count) < text_count


async def _mark_plain(
    text: str, find: Callable[[str], object], hits: bytearray, number: int, steps: Steps
) -> bool:  # fmt: skip
    """Mark the lines of a text in which something is found; return False where one is too long for that."""
    names = text.split("\n")[: len(hits) - number]
    longest = max(map(len, names), default=0)
    if longest > NAME_MAX:
        return False
    at_once = SHORT_A_STEP if longest <= SHORT else 1
    for at in range(0, len(names), at_once):
        found = bytes(map(bool, map(find, names[at : at + at_once])))
        hits[number + at : number + at + len(found)] = found
        await steps.rest()
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
        chosen.extend(itertools.compress(some, map(hits.__getitem__, some)))
        await steps.rest()
    return chosen


async def keep_both(hits: bytearray, others: bytearray) -> None:
    """Leave of some marks only those that others have, too."""
    steps = Steps()
    for at in range(0, len(hits), FLAGS_A_STEP):
        end = at + FLAGS_A_STEP
        hits[at:end] = bytes(map(and_, hits[at:end], others[at:end]))
        await steps.rest()

"""Which of many names are wanted, found in their long texts in steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gateway.admin.steps import Steps


class Search(NamedTuple):
    """Which names are wanted."""

    matches: Callable[[str], object]
    word: str = ""  # in lower case: all names that have it are wanted, and no others; empty: `matches` says it


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
        for number, name in enumerate(text.split("\n"), at * text_count):
            if number < count and search.matches(name):
                hits[number] = 1
            if number % 64 == 0:
                await steps.rest()
    return hits


def _mark_lines(text: str, word: str, hits: bytearray, number: int) -> None:
    """Mark the lines of a text that have a word; the first one has that number."""
    at, pos = 0, -1 if "\n" in word else text.find(word)
    while pos >= 0:
        number += text.count("\n", at, pos)
        if number < len(hits):
            hits[number] = 1
        at = text.find("\n", pos)
        pos = -1 if at < 0 else text.find(word, at)

"""Which names of a long list are wanted, kept for the searches of late: a name stays the same for good."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.admin.rosters.searching import Search, find_hits

KEPT_MAX = 2  # searches, a byte for each name; more are not asked in turns by one who looks


class _Hits:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.marks = bytearray()


class KeptHits:
    """The names that were found by the last searches."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], _Hits] = {}

    async def find(self, search: Search, texts: Sequence[str], text_count: int, count: int) -> bytearray:
        """Return for each number below `count` whether its name is wanted, as `find_hits`; the caller's own."""
        key = search.word, search.pattern
        if key == ("", ""):
            return await find_hits(search, texts, text_count, count)
        hits = self._kept.pop(key, None) or _Hits()
        self._kept[key] = hits
        if len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        async with hits.lock:
            if len(hits.marks) < count:
                text = len(hits.marks) // text_count
                first = text * text_count
                hits.marks[first:] = await find_hits(search, texts[text:], text_count, count - first)
            return hits.marks[:count]

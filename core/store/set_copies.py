"""Dispatch sets that are sound, and where the queues of one stood: what a log still says of a set that is damaged."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from core import octets
from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.properties import DISPATCH_SET, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, decode_properties
from core.store.dispatch_set import SET_HEADER_BYTES, decode_set
from core.store.layout import SYS_NOT_DISPATCHED
from core.store.record import Buffer, fill_columns, find_sound, is_gap, is_intact, is_set

DAMAGE = -1  # in place of the position of a record


class SetCopy(NamedTuple):
    """A sound record of a dispatch set."""

    place: int  # its physical offset
    head: bytes  # the record up to its body
    text: bytes  # the names as they are encoded
    names: list[bytes]
    offsets: array[int]


def walk(into: StoredBatch, view: Buffer, base: int, pos: int) -> Iterator[int]:
    """Fill row 0 of `into` with each sound record from `pos` on, and give its position; DAMAGE where there is some."""
    while True:
        while fill_columns(into, 0, view, pos, base) and is_intact(into, 0, view):
            end = into.record_end[0]
            yield pos
            pos = end
        pos = find_sound(into, view, base, pos, len(view))
        if pos < 0:
            return
        yield DAMAGE


def read_copy(into: StoredBatch, view: Buffer, place: int, pos: int) -> SetCopy | None:
    """Return the set whose record is in row 0 of `into`, or None where that is no sound set."""
    body_start, body_end = into.body_start[0], into.body_end[0]
    body = octets.read_bytes(view, body_start, body_end)
    if not is_set(into, 0, view) or octets.crc32(body, 0, len(body)) != octets.read_u32(view, pos + 8):
        return None
    try:
        names, offsets = decode_set(body)
    except CorruptRecordError:
        return None
    text = body[SET_HEADER_BYTES : SET_HEADER_BYTES + octets.read_u32(body, 8)]
    return SetCopy(place, octets.read_bytes(view, pos, body_start), text, names, offsets)


def find_copies(view: Buffer, base: int) -> list[SetCopy]:
    """Return the sound sets of a segment, in their order."""
    into = StoredBatch(1)
    found = (read_copy(into, view, base + pos, pos) for pos in walk(into, view, base, 0) if pos != DAMAGE)
    return [copy for copy in found if copy is not None]


class QueueCount:
    """Counts from a damaged set on what its queues get, until something names an offset of each.

    Args:
        place: The set's physical offset.
        names: Its queues.
        copies: Sets that are known before it.
    """

    def __init__(self, place: int, names: list[bytes], copies: Iterable[SetCopy]) -> None:
        self._place = place
        self._names = names
        self._members = {copy.place: frozenset(copy.names) for copy in copies}
        self._uses: dict[int, int] = {}  # by set
        self._found: dict[bytes, int] = {}
        self._waiting = set(names)

    @property
    def use_count(self) -> int:
        """How many messages named the set."""
        return self._uses.get(self._place, 0)

    def contradicts(self, offsets: array[int]) -> bool:
        """Return whether one of the queues is known to have stood before its offset in `offsets`."""
        return any(self._found.get(name, offset) < offset for name, offset in zip(self._names, offsets, strict=True))

    def run(self, segments: Iterable[tuple[int, Buffer, int]]) -> array[int] | None:
        """Go through segments, each by base, bytes and where to begin; return where the queues stood at the set.

        None where they end before each queue was named, or something was lost meanwhile.
        """
        into = StoredBatch(1)
        for base, view, start in segments:
            for pos in walk(into, view, base, start):
                if pos == DAMAGE or is_gap(into, 0, view) or not self._take(into, view, base, pos):
                    return None
                if not self._waiting:
                    return array("q", [self._found[name] for name in self._names])
        return None

    def look_through(self, segments: Iterable[tuple[int, Buffer, int]]) -> None:
        """Go through segments as `run` does, but past what is damaged: what is left of a damaged use counts as one.

        A use of which nothing is left is not counted, so `contradicts` then says less, never more.
        """
        into = StoredBatch(1)
        use = re.compile(re.escape(b"%b\x01%d\x02" % (DISPATCH_SET, self._place)))
        for base, view, start in segments:
            end = start
            for pos in walk(into, view, base, start):
                if pos == DAMAGE:
                    continue
                if pos > end:
                    hidden = sum(1 for _ in use.finditer(view, end, pos))
                    self._uses[self._place] = self.use_count + hidden
                if not is_gap(into, 0, view):
                    self._take(into, view, base, pos)
                if not self._waiting:
                    return
                end = into.record_end[0]

    def _take(self, into: StoredBatch, view: Buffer, base: int, pos: int) -> bool:
        copy = read_copy(into, view, base + pos, pos)
        if copy is not None:
            self._members[copy.place] = frozenset(copy.names)
            self._name_offsets(zip(copy.names, copy.offsets, strict=True))
            return True
        properties = decode_properties(octets.read_bytes(view, into.properties_start[0], into.properties_end[0]))
        if into.sys_flag[0] & SYS_NOT_DISPATCHED:
            return True
        if INNER_MULTI_DISPATCH in properties:
            names = properties[INNER_MULTI_DISPATCH].split(b",")
            offsets = properties.get(INNER_MULTI_QUEUE_OFFSET, b"").split(b",")
            if len(names) == len(offsets) and all(offset.isdigit() for offset in offsets):
                self._name_offsets(zip(names, map(int, offsets), strict=True))
            return True
        named = properties.get(DISPATCH_SET, b"")
        if not named.isdigit():
            return True
        place = int(named)
        self._uses[place] = self._uses.get(place, 0) + 1
        return place == self._place or place in self._members

    def _name_offsets(self, named: Iterable[tuple[bytes, int]]) -> None:
        for name, offset in named:
            if name in self._waiting:
                self._waiting.remove(name)
                self._found[name] = offset - sum(
                    count
                    for place, count in self._uses.items()
                    if place == self._place or name in self._members.get(place, ())
                )

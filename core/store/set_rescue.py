"""What a damaged dispatch set held: found out from what is left of its record and from other copies, never guessed.

A checksum must prove it: with one bit of the record put right, or with the names of another copy and offsets that are
left in the record, known to an earlier reader, or counted back from what names them later. Where no checksum is left,
offsets that are known and those that are counted back must be the same for every queue, in a record of just that size.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Protocol

from core import octets
from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.properties import DISPATCH_SET
from core.reserved import DISPATCH_SET_TOPIC
from core.store.dispatch_set import (
    SET_HEADER_BYTES,
    SET_VERSION,
    decode_set,
    encode_varint,
    read_varint,
    varint_size,
)
from core.store.flipped_bit import repairs
from core.store.layout import CRC_PROPERTY_BYTES, STORE_MS_AT, SYS_BORN_V6
from core.store.record import Buffer, fill_columns, is_intact, is_set
from core.store.record_write import write_crc, write_topic
from core.store.set_copies import QueueCount, SetCopy, find_copies

SET_BYTES_MAX = 8 << 20  # a larger record is none of a set: half a million queues
SEGMENTS_NEAR = 5  # the damaged one and four after it: as far as copies are looked for
_TAIL_BYTES = len(DISPATCH_SET_TOPIC) + 2 + CRC_PROPERTY_BYTES  # after the topic's length
_TAIL_LIKENESS = len(DISPATCH_SET_TOPIC) * 3 // 4  # damage may be in some letters of it
_BORN_MS_AT = 40  # in a record, as RocketMQ has it
_CRC_AT = 8
_PLACE = re.compile(DISPATCH_SET + rb"\x01([0-9]{1,18})\x02")


class SetSources(Protocol):
    """What lies around the segment of a damaged set."""

    def others(self) -> Iterable[tuple[int, Buffer]]:
        """Give other segments that may hold copies, the nearest first."""

    def later(self) -> Iterable[tuple[int, Buffer]]:
        """Give the segments after this one, in their order."""

    def stood(self, names: list[bytes]) -> array[int] | None:
        """Return where queues stood at the damage, 0 for those that are not known, or None."""


class RestoredSet(NamedTuple):
    """What a damaged set held."""

    names: list[bytes]
    offsets: array[int]
    size: int  # of its record


class SetRescue:
    """Restores sets of one segment, with the help of what lies around it where there is any.

    Args:
        view: The segment.
        base: Its first physical offset.
        sources: Other segments, and where queues stood.
    """

    def __init__(self, view: Buffer, base: int, sources: SetSources | None) -> None:
        self._view = view
        self._base = base
        self._sources = sources
        self._named: set[int] | None = None
        self._copies: list[SetCopy] | None = None

    def restore(self, pos: int, end: int) -> RestoredSet | None:
        """Return the set whose damaged record begins at `pos`, and ends at `end` or before it; None where nobody knows.

        Args:
            pos: Where the record begins.
            end: Where the next sound record does.
        """
        if end - pos > SET_BYTES_MAX:
            return None
        raw = octets.read_bytes(self._view, pos, end)
        place = self._base + pos
        found = restore_flipped_bit(raw, place) if _ends_like_a_set(raw) else None
        if found is not None or not self.is_named(pos):
            return found
        tried: set[bytes] = set()
        for copy in self._all_copies():
            if copy.text not in tried:
                tried.add(copy.text)
                found = self._restore_by(copy, raw, pos, end)
                if found is not None:
                    return found
        return None

    def is_named(self, pos: int) -> bool:
        """Return whether messages of the segment have their set at `pos`."""
        if self._named is None:
            self._named = {int(match[1]) for match in _PLACE.finditer(self._view)}
        return self._base + pos in self._named

    def _own_copies(self) -> list[SetCopy]:
        if self._copies is None:
            self._copies = find_copies(self._view, self._base)
        return self._copies

    def _all_copies(self) -> Iterator[SetCopy]:
        yield from self._own_copies()
        for base, view in self._sources.others() if self._sources is not None else ():
            yield from find_copies(view, base)

    def _restore_by(self, copy: SetCopy, raw: bytes, pos: int, end: int) -> RestoredSet | None:
        names = copy.names
        stood = self._sources.stood(names) if self._sources is not None else None
        left = _read_offsets(raw, len(copy.head) + SET_HEADER_BYTES + len(copy.text), len(names))
        before = [one for one in self._own_copies() if one.place < self._base + pos]
        for offsets in (left, stood):
            if offsets is not None and (size := _proven_size(raw, self._base + pos, copy, offsets)):
                return self._unless_given_again(RestoredSet(names, offsets, size), pos, before)
        count = QueueCount(self._base + pos, names, before)
        counted = count.run(self._from(end))
        if counted is None or min(counted) < 0:
            return None
        size = _proven_size(raw, self._base + pos, copy, counted)
        if not size and counted == stood and count.use_count:
            record = _build(self._base + pos, copy, counted, bytes(8))
            size = len(record) if len(record) == len(raw) else 0
        return self._unless_given_again(RestoredSet(names, counted, size), pos, before) if size else None

    def _unless_given_again(self, found: RestoredSet, pos: int, before: list[SetCopy]) -> RestoredSet | None:
        """Return `found`, or None where it was lost before, when there was no copy: others have its offsets since."""
        near = QueueCount(self._base + pos, found.names, before)
        near.look_through(islice(self._from(pos + found.size), SEGMENTS_NEAR))
        return None if near.contradicts(found.offsets) else found

    def _from(self, pos: int) -> Iterator[tuple[int, Buffer, int]]:
        """Give all that follows `pos`: base, bytes and where to begin."""
        yield self._base, self._view, pos
        for base, view in self._sources.later() if self._sources is not None else ():
            yield base, view, 0


def restore_flipped_bit(raw: bytes, place: int) -> RestoredSet | None:
    """Return the set of a record in which one bit is wrong; None where no single flipped bit makes it sound."""
    found = [made for made in (_read_record(record, place) for record in repairs(raw)) if made is not None]
    return found[0] if found and all(made == found[0] for made in found) else None


def _read_record(record: bytes, place: int) -> RestoredSet | None:
    into = StoredBatch(1)
    if not fill_columns(into, 0, record, 0, place) or into.record_end[0] != len(record):
        return None
    body = record[into.body_start[0] : into.body_end[0]]
    if not (is_intact(into, 0, record) and is_set(into, 0, record)):
        return None
    if octets.crc32(body, 0, len(body)) != octets.read_u32(record, _CRC_AT):
        return None
    try:
        return RestoredSet(*decode_set(body), len(record))
    except CorruptRecordError:
        return None


def _ends_like_a_set(raw: bytes) -> bool:
    topic = raw[-_TAIL_BYTES : -_TAIL_BYTES + len(DISPATCH_SET_TOPIC)]
    return sum(left == right for left, right in zip(topic, DISPATCH_SET_TOPIC, strict=False)) >= _TAIL_LIKENESS


def _read_offsets(raw: bytes, at: int, count: int) -> array[int] | None:
    """Return the `count` numbers that stand at `at`, or None."""
    view = memoryview(raw)
    offsets = array("q")
    for _ in range(count):
        value = read_varint(view, at, len(raw))
        if value < 0:
            return None
        offsets.append(value)
        at += varint_size(value)
    return offsets


def _proven_size(raw: bytes, place: int, copy: SetCopy, offsets: array[int]) -> int:
    """Return the size of the record with the names of `copy` and these offsets, 0 where no checksum of `raw` is its."""
    is_born_v6 = octets.read_u32(copy.head, 36) & SYS_BORN_V6
    store_ms_at = STORE_MS_AT + (12 if is_born_v6 else 0)
    for at in (_BORN_MS_AT, store_ms_at):  # they are the same
        record = _build(place, copy, offsets, raw[at : at + 8])
        size = len(record)
        is_body = record[_CRC_AT : _CRC_AT + 4] == raw[_CRC_AT : _CRC_AT + 4]
        if size <= len(raw) and (is_body or record[-CRC_PROPERTY_BYTES:] == raw[size - CRC_PROPERTY_BYTES : size]):
            return size
    return 0


def _build(place: int, copy: SetCopy, offsets: array[int], store_ms: bytes) -> bytes:
    """Return the record of a set as it was written at `place`, if it was so."""
    numbers = b"".join(map(encode_varint, offsets))
    body_size = SET_HEADER_BYTES + len(copy.text) + len(numbers)
    head_size = len(copy.head)
    size = head_size + body_size + 1 + _TAIL_BYTES
    record = bytearray(size)
    record[:head_size] = copy.head
    store_ms_at = STORE_MS_AT + (12 if octets.read_u32(copy.head, 36) & SYS_BORN_V6 else 0)
    record[_BORN_MS_AT : _BORN_MS_AT + 8] = record[store_ms_at : store_ms_at + 8] = store_ms.ljust(8, b"\0")[:8]
    octets.write_u32(record, 0, size)
    octets.write_u64(record, 28, place)
    octets.write_u32(record, head_size - 4, body_size)
    octets.write_u32(record, head_size, SET_VERSION)
    octets.write_u32(record, head_size + 4, len(copy.names))
    octets.write_u32(record, head_size + 8, len(copy.text))
    at = octets.put_bytes(record, head_size + SET_HEADER_BYTES, copy.text + numbers)
    octets.write_u32(record, _CRC_AT, octets.crc32(record, head_size, at))
    at = write_topic(record, at, DISPATCH_SET_TOPIC)
    octets.write_u16(record, at, CRC_PROPERTY_BYTES)
    write_crc(record, 0, at + 2)
    return bytes(record)

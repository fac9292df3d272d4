"""The light queues that a message goes to: short lists stand in the record, long ones are interned.

An interned set is a record of its own, once in each segment that uses it: its body holds the names, sorted, each cut by
what it shares with the one before, and the next offset of each queue as of then. Messages refer to it by `LMQ_SET`.

Source: docs/storage-format.md, "Dispatch sets".
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from weakref import WeakValueDictionary

from core import octets
from core.errors import CorruptRecordError, InvalidNameError
from core.message import DispatchSet, RefRoom
from core.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from core.store.queue_names import QueueNames

LMQ_PREFIX = b"%LMQ%"
OFFSET_DIGITS = 12  # room that an inline list counts for each offset and its comma
SET_HEADER_BYTES = 12  # version, count, bytes of the names
SET_VERSION = 1
_VARINT_MASK = 0x7F


class DispatchSets:
    """The sets in use: equal lists of names give one object, for as long as anybody holds it.

    Args:
        names: The refs of the queues.
        inline_bytes: Lists that pass this with their offsets are interned.
    """

    def __init__(self, names: QueueNames, inline_bytes: int) -> None:
        self._names = names
        self._inline_bytes = inline_bytes
        self._room = RefRoom()
        self._sets: WeakValueDictionary[tuple[bytes, ...], DispatchSet] = WeakValueDictionary()

    def make(self, names: Sequence[bytes]) -> DispatchSet:
        """Return the set of `names`, without duplicates.

        Raises:
            InvalidNameError: A name that no list can hold, or that is no light queue's.
        """
        key = tuple(names)
        found = self._sets.get(key)
        if found is None:
            found = self._make(list(dict.fromkeys(key)))
            self._sets[key] = found
        return found

    def _make(self, names: list[bytes]) -> DispatchSet:
        for name in names:
            check_light_queue(name)
        joined = b",".join(names)
        is_interned = len(joined) + OFFSET_DIGITS * len(names) > self._inline_bytes
        if is_interned:
            names = sorted(names)
        refs = [self._names.intern(name) for name in names]
        text = encode_names(names) if is_interned else inline_text(joined)
        return DispatchSet(names, refs, text, self._room, is_interned=is_interned)


def check_light_queue(name: bytes) -> None:
    """Refuse what cannot be a name in a list of light queues.

    Raises:
        InvalidNameError: It lacks the prefix, or holds a separator.
    """
    if not name.startswith(LMQ_PREFIX) or len(name) == len(LMQ_PREFIX):
        raise InvalidNameError(name.decode("utf-8", "replace"), "a light queue's name starts with %LMQ%")
    if b"," in name or b"\x01" in name or b"\x02" in name:
        raise InvalidNameError(name.decode("utf-8", "replace"), "a light queue's name holds no comma and no separator")


def inline_text(joined: bytes) -> bytes:
    """Return what a record with an inline list of names carries up to the offsets; nothing for no names."""
    if not joined:
        return b""
    return b"%b\x01%b\x02%b\x01" % (INNER_MULTI_DISPATCH, joined, INNER_MULTI_QUEUE_OFFSET)


def shared_size(left: bytes, right: bytes) -> int:
    """Return how many bytes two names have in common at their start."""
    size = min(len(left), len(right))
    at = 0
    while at < size and left[at] == right[at]:
        at += 1
    return at


def encode_varint(value: int) -> bytes:
    """Return `value` (at least 0) in groups of seven bits, the lowest first."""
    out: list[int] = []
    while value > _VARINT_MASK:
        out.append(value & _VARINT_MASK | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_names(names: list[bytes]) -> bytes:
    """Return sorted names: for each, how much it shares with the one before, the size of the rest, and the rest."""
    parts: list[bytes] = []
    before = b""
    for name in names:
        shared = shared_size(before, name)
        parts.extend((encode_varint(shared), encode_varint(len(name) - shared), name[shared:]))
        before = name
    return b"".join(parts)


def read_varint(buf: bytes | bytearray | memoryview, at: int, end: int) -> int:
    """Return the number at `at`, or -1 where none ends before `end`; `varint_size` tells where it ends."""
    value = 0
    shift = 0
    while at < end and shift < 63:
        octet = buf[at]
        value |= (octet & _VARINT_MASK) << shift
        if octet <= _VARINT_MASK:
            return value
        shift += 7
        at += 1
    return -1


def varint_size(value: int) -> int:
    """Return how many bytes `value` takes."""
    size = 1
    while value > _VARINT_MASK:
        value >>= 7
        size += 1
    return size


def decode_set(body: bytes) -> tuple[list[bytes], array[int]]:
    """Return the names in the body of a set's record, and the next offset of each queue as of then.

    Raises:
        CorruptRecordError: It is no such body; the offset of the error is the position in it.
    """
    if len(body) < SET_HEADER_BYTES or octets.read_u32(body, 0) != SET_VERSION:
        raise CorruptRecordError(0, "not a dispatch set")
    count = octets.read_u32(body, 4)
    names_end = SET_HEADER_BYTES + octets.read_u32(body, 8)
    if names_end > len(body) or count > len(body):
        raise CorruptRecordError(4, "a dispatch set's lengths do not add up")
    names = decode_names(body, SET_HEADER_BYTES, names_end, count)
    view = memoryview(body)
    offsets = array("q", bytes(8 * count))
    at = names_end
    for k in range(count):
        value = read_varint(view, at, len(body))
        if value < 0:
            raise CorruptRecordError(at, "a dispatch set ends within its offsets")
        offsets[k] = value
        at += varint_size(value)
    return names, offsets


def decode_names(body: bytes, at: int, end: int, count: int) -> list[bytes]:
    """Return `count` names that `encode_names` wrote to [at, end).

    Raises:
        CorruptRecordError: They do not fill it.
    """
    names: list[bytes] = []
    name = b""
    view = memoryview(body)
    for _ in range(count):
        shared = read_varint(view, at, end)
        at += varint_size(shared)
        size = read_varint(view, at, end)
        at += varint_size(size)
        if shared < 0 or size < 0 or shared > len(name) or size > end - at:
            raise CorruptRecordError(at, "a dispatch set's names do not add up")
        name = name[:shared] + body[at : at + size]
        at += size
        names.append(name)
    return names

"""What a dead letter says of how it died: the header `x-death` and its companions, as RabbitMQ writes them.

Blocks were checked before. Source: docs/protocols/amqp.md, "Dead letters".
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from core import octets
from gateway.amqp.field_table import skip_value

DEATH = b"x-death"
COPIES = b"CC"
DELIVERY_COUNT = b"x-delivery-count"
STREAM_OFFSET = b"x-stream-offset"
FIRST = (b"x-first-death-exchange", b"x-first-death-queue", b"x-first-death-reason")
LAST = (b"x-last-death-exchange", b"x-last-death-queue", b"x-last-death-reason")
REJECTED = b"rejected"
EXPIRED = b"expired"
MAXLEN = b"maxlen"
DELIVERY_LIMIT = b"delivery_limit"
_HEADERS, _EXPIRATION = 2, 7
_ARRAY, _TABLE, _LONG_TEXT, _LONG = b"A", b"F", b"S", b"l"
_BITS = 14  # the class basic has 14 properties
_HAS_EXPIRATION, _HAS_HEADERS = 0x8000 >> _EXPIRATION, 0x8000 >> _HEADERS
_HAS_BEFORE = (0x8000, 0x4000)  # the properties before the headers
_TOLD_MAX = 64  # kinds of first deaths that are remembered as they are written
_SIZES = {3: 1, 4: 1, 9: 8}  # of the properties that are no text and no table, by their number

Entries = list[tuple[bytes, bytes]]
"""The entries of a table: name, and value with its type."""


class Death(NamedTuple):
    """One message that leaves a queue for its dead letters.

    Args:
        reason: `REJECTED`, `EXPIRED`, `MAXLEN` or `DELIVERY_LIMIT`.
        queue: Where it was.
        exchange: What it was published to there ...
        key: ... by this routing key.
        at_s: When, in seconds.
        keeps_copies: Whether it goes on by its own routing keys, those of the header `CC` among them.
    """

    reason: bytes
    queue: bytes
    exchange: bytes
    key: bytes
    at_s: int
    keeps_copies: bool


class Buried(NamedTuple):
    """A dead letter: its block, the routing keys it had, and of each death, the latest first, reason and queue."""

    block: bytes
    keys: tuple[bytes, ...]
    deaths: tuple[tuple[bytes, bytes], ...]


def bury(block: bytes, death: Death) -> Buried:
    """Return what a message with this property block is as a dead letter; it has no `expiration` any more."""
    flags = octets.read_u16(block, 0)
    if not flags & _HAS_EXPIRATION and b"-death" not in block and b"\x02CC" not in block:  # most are so: a first death
        told = _tell_first(death)
        return Buried(_add_headers(block, flags, told), (death.key,), ((death.reason, death.queue),))
    parts = split_block(block)
    headers = _entries(parts.get(_HEADERS, b"")[4:])
    found = dict(reversed(headers))  # of equal names the first counts
    keys = (death.key, *_texts(found.get(COPIES, b"")))
    before = [_entries(item[5:]) for item in _items(found.get(DEATH, b"")) if item[:1] == _TABLE]
    deaths = _count(before, death, keys, parts.pop(_EXPIRATION, b"")[1:])
    left_out = {DEATH, *LAST} if death.keeps_copies else {DEATH, *LAST, COPIES}
    headers = [entry for entry in headers if entry[0] not in left_out]
    headers += _tell(deaths, death, is_first=not any(name in found for name in FIRST))
    parts[_HEADERS] = _table(headers)
    return Buried(_whole(parts), keys, tuple(_of(one) for one in deaths))


def _tell(deaths: list[Entries], death: Death, *, is_first: bool) -> Entries:
    """Return the headers that tell of deaths, the last of which is `death`."""
    said = (death.exchange, death.queue, death.reason)
    told = [(DEATH, _sized(_ARRAY, b"".join([_sized(_TABLE, _join(one)) for one in deaths])))]
    for names in (FIRST, LAST) if is_first else (LAST,):
        told += [(name, _sized(_LONG_TEXT, text)) for name, text in zip(names, said, strict=True)]
    return told


@lru_cache(_TOLD_MAX)
def _tell_first(death: Death) -> bytes:
    """Return the headers of a message that never died before, and had no expiration and no copies."""
    return _join(_tell(_count([], death, (death.key,), b""), death, is_first=True))


def _add_headers(block: bytes, flags: int, entries: bytes) -> bytes:
    """Return a block with further headers behind those that it has."""
    pos = 2
    for flag in _HAS_BEFORE:
        if flags & flag:
            pos += 1 + block[pos]
    if not flags & _HAS_HEADERS:
        head = (flags | _HAS_HEADERS).to_bytes(2, "big") + block[2:pos]
        return head + len(entries).to_bytes(4, "big") + entries + block[pos:]
    size = octets.read_u32(block, pos)
    end = pos + 4 + size
    return block[:pos] + (size + len(entries)).to_bytes(4, "big") + block[pos + 4 : end] + entries + block[end:]


def last_death(block: bytes) -> tuple[bytes, bytes]:
    """Return why and in which queue a letter's message died last, by the letter's block; empty if it does not say."""
    headers = dict(reversed(_entries(split_block(block).get(_HEADERS, b"")[4:])))  # of equal names the first counts
    deaths = _items(headers.get(DEATH, b""))
    return _of(_entries(deaths[0][5:])) if deaths and deaths[0][:1] == _TABLE else (b"", b"")


def add_number(block: bytes, name: bytes, number: int) -> bytes:
    """Return a property block with a number of the broker as a header, in place of others of that name."""
    parts = split_block(block)
    headers = [entry for entry in _entries(parts.get(_HEADERS, b"")[4:]) if entry[0] != name]
    parts[_HEADERS] = _table([*headers, (name, _LONG + number.to_bytes(8, "big", signed=True))])
    return _whole(parts)


def is_cycle(queue: bytes, deaths: tuple[tuple[bytes, bytes], ...]) -> bool:
    """Return whether a message comes to a queue again, not rejected since it died there: it would go round for ever.

    Args:
        queue: Where it would go.
        deaths: Reason and queue of each of its deaths, the latest first.
    """
    for reason, died_in in deaths:
        if reason == REJECTED:
            return False
        if died_in == queue:
            return True
    return False


def _count(before: list[Entries], death: Death, keys: tuple[bytes, ...], expiration: bytes) -> list[Entries]:
    """Return the deaths with this one first: it is counted where the message died so before, in the same queue."""
    rest: list[Entries] = []
    same: Entries | None = None
    for one in before:
        if same is None and _of(one) == (death.reason, death.queue):
            same = one
        else:
            rest.append(one)
    if same is not None:
        return [[(name, _more(value)) if name == b"count" else (name, value) for name, value in same], *rest]
    said = [
        (b"count", _LONG + (1).to_bytes(8, "big")),
        (b"reason", _sized(_LONG_TEXT, death.reason)),
        (b"queue", _sized(_LONG_TEXT, death.queue)),
        (b"time", b"T" + death.at_s.to_bytes(8, "big")),
        (b"exchange", _sized(_LONG_TEXT, death.exchange)),
        (b"routing-keys", _sized(_ARRAY, b"".join([_sized(_LONG_TEXT, key) for key in keys]))),
    ]
    if expiration:
        said.append((b"original-expiration", _sized(_LONG_TEXT, expiration)))
    return [said, *rest]


def _of(death: Entries) -> tuple[bytes, bytes]:
    said = dict(death)
    return said.get(b"reason", b"")[5:], said.get(b"queue", b"")[5:]


def _more(count: bytes) -> bytes:
    """Return a count and one more, 1 where it is none."""
    number = int.from_bytes(count[1:], "big") if count[:1] in {_LONG, b"L"} else 0
    return _LONG + min(number + 1, (1 << 63) - 1).to_bytes(8, "big")


def split_block(block: bytes) -> dict[int, bytes]:
    """Return the properties of a block by their numbers, as they stand there."""
    flags = octets.read_u16(block, 0)
    parts: dict[int, bytes] = {}
    pos = 2
    for number in range(_BITS):
        if flags & (0x8000 >> number):
            size = _SIZES.get(number, -1)
            if number == _HEADERS:
                size = 4 + octets.read_u32(block, pos)
            elif size < 0:
                size = 1 + block[pos]
            parts[number] = block[pos : pos + size]
            pos += size
    return parts


def _whole(parts: dict[int, bytes]) -> bytes:
    flags = sum(0x8000 >> number for number in parts)
    return flags.to_bytes(2, "big") + b"".join([parts[number] for number in sorted(parts)])


def _table(entries: Entries) -> bytes:
    table = _join(entries)
    return len(table).to_bytes(4, "big") + table


def _entries(table: bytes) -> Entries:
    found: Entries = []
    pos = 0
    while pos < len(table):
        value = pos + 1 + table[pos]
        after = skip_value(table, value)
        found.append((table[pos + 1 : value], table[value:after]))
        pos = after
    return found


def _items(array: bytes) -> list[bytes]:
    """Return the values of an array, each with its type; none where it is no array."""
    found: list[bytes] = []
    pos = 5 if array[:1] == _ARRAY else len(array)
    while pos < len(array):
        after = skip_value(array, pos)
        found.append(array[pos:after])
        pos = after
    return found


def _texts(array: bytes) -> list[bytes]:
    return [item[5:] for item in _items(array) if item[:1] == _LONG_TEXT]


def _join(entries: Entries) -> bytes:
    return b"".join([bytes((len(name),)) + name + value for name, value in entries])


def _sized(kind: bytes, value: bytes) -> bytes:
    return kind + len(value).to_bytes(4, "big") + value

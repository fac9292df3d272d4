"""What the bindings of a headers exchange ask of a message's headers, as RabbitMQ has it.

A pattern names headers and their values; a value of type void asks only that the header is there. Numbers of all
types are equal by their value, moments among them, and so are texts and other bytes. Decimals, tables and arrays are
equal to their like, type by type, and flags are no numbers. What is not a number (NaN) is equal to its like, so that
a binding by it can be taken back; in RabbitMQ no table may hold it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import INTEGERS, Field, read_table
from gateway.amqp.reply_codes import ReplyCode

X_MATCH = "x-match"
ALL = "all"
ANY = "any"
WITH_X = "-with-x"  # headers that begin with x- count too
CHOICES = (ALL, ANY, ALL + WITH_X, ANY + WITH_X)
_PRIVATE = "x-"
_WORDS = {"None": "undefined", "True": "true", "False": "false"}  # as Erlang writes them
_ALIKE = {"int": "number", "float": "number", "timestamp": "number", "binary": "longstr"}
_PRESENT = ""  # the type of a value that any value is equal to
_HEADERS = 0x2000  # among the flags of a property block
_BEFORE_HEADERS = (0x8000, 0x4000)

Value = bool | float | bytes | None
Pair = tuple[str, str, Value]
"""A header's name, its type and its value."""


class HeaderMatch(NamedTuple):
    """The arguments of one binding."""

    kind: str
    pairs: tuple[Pair, ...]

    @property
    def is_any(self) -> bool:
        """Whether one pair is enough."""
        return self.kind.startswith(ANY)


def parse_match(arguments: Mapping[str, Field]) -> HeaderMatch:
    """Return what a binding with these arguments asks for.

    Raises:
        AmqpError: PRECONDITION_FAILED: `x-match` is none of the four words.
    """
    said = arguments.get(X_MATCH)
    kind = ALL
    if said is not None:
        if said.text is None:
            shown = _WORDS.get(repr(said.value), repr(said.value))
            reason = f"Invalid x-match field type {said.kind} (value {shown}); expected longstr"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
        kind = said.text
        if kind not in CHOICES:
            reason = f'Invalid x-match field value <<"{kind}">>; expected all, any, all-with-x, or any-with-x'
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
    names = [name for name in arguments if name != X_MATCH and (kind.endswith(WITH_X) or not name.startswith(_PRIVATE))]
    return HeaderMatch(kind, tuple(_pair(name, arguments[name]) for name in sorted(names)))


def _pair(name: str, field: Field) -> Pair:
    if field.kind == "void":
        return name, _PRESENT, None
    if field.kind in INTEGERS:
        return name, "int", field.value
    if field.kind in {"float", "double"}:
        return name, "float", find_same(field.value)
    return name, field.kind, field.value


def find_same(value: Value) -> Value:
    """Return a value as patterns keep it: one object for what is not a number, which is equal to no other."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value


Owner = TypeVar("Owner")
Wanted: TypeAlias = dict[tuple[Owner, HeaderMatch], tuple[Pair, ...]]
"""Patterns, each with its pairs as they are compared."""


class HeaderIndex(Generic[Owner]):
    """The patterns of one exchange, found by the headers of a message without looking at each."""

    def __init__(self) -> None:
        self._any: dict[Pair, Wanted[Owner]] = {}  # by pair, where one is enough
        self._all: dict[Pair, Wanted[Owner]] = {}  # by one of the pairs
        self._always: dict[tuple[Owner, HeaderMatch], None] = {}  # that ask for nothing, and for all of it
        self._more: dict[tuple[Owner, HeaderMatch], int] = {}  # how often each was put in again

    def add(self, owner: Owner, match: HeaderMatch) -> None:
        """Put in a pattern; one that is there counts once more, as bindings differ also by their keys."""
        entry = (owner, match)  # one object in all places: what is equal is compared by its hash alone
        if self._has(entry):
            self._more[entry] = self._more.get(entry, 0) + 1
            return
        if not match.pairs and not match.is_any:
            self._always[entry] = None
        by_pair = self._any if match.is_any else self._all
        pairs = _compared(match)
        for pair in _indexed(match):
            by_pair.setdefault(pair, {})[entry] = pairs

    def remove(self, owner: Owner, match: HeaderMatch) -> None:
        """Take out a pattern that is there; it is found until it was taken out as often as it was put in."""
        more = self._more.pop((owner, match), 0)
        if more:
            if more > 1:
                self._more[owner, match] = more - 1
            return
        self._always.pop((owner, match), None)
        by_pair = self._any if match.is_any else self._all
        for pair in _indexed(match):
            entries = by_pair[pair]
            del entries[owner, match]
            if not entries:
                del by_pair[pair]

    def _has(self, entry: tuple[Owner, HeaderMatch]) -> bool:
        match = entry[1]
        by_pair = self._any if match.is_any else self._all
        return entry in self._always or any(entry in by_pair.get(pair, ()) for pair in _indexed(match)[:1])

    def find(self, headers: Mapping[str, Field]) -> Collection[tuple[Owner, HeaderMatch]]:
        """Return the patterns that a message with these headers matches, each once."""
        found = dict(self._always)
        said: set[Pair] = {(name, _PRESENT, None) for name in headers}
        said |= {_alike(_pair(name, field)) for name, field in headers.items()}
        for pair in self._any.keys() & said:
            found.update(dict.fromkeys(self._any[pair]))
        for pair in self._all.keys() & said:
            for entry, pairs in self._all[pair].items():
                if said.issuperset(pairs):
                    found[entry] = None
        return found.keys()


def _indexed(match: HeaderMatch) -> tuple[Pair, ...]:
    """Return the pairs that a pattern is looked up by: all where one is enough, else one, with a value if there is."""
    pairs = _compared(match)
    return pairs if match.is_any else tuple(sorted(pairs, key=lambda pair: pair[1] == _PRESENT)[:1])


def _compared(match: HeaderMatch) -> tuple[Pair, ...]:
    """Return the pairs of a pattern with the types by which they are compared, which do not tell bindings apart."""
    return tuple(map(_alike, match.pairs))


def _alike(pair: Pair) -> Pair:
    name, kind, value = pair
    return name, _ALIKE.get(kind, kind), value


def find_headers(block: bytes) -> bytes:
    """Return the headers of a property block that was checked, as they stand there, without their length."""
    flags = int.from_bytes(block[:2], "big")
    if not flags & _HEADERS:
        return b""
    pos = 2
    for flag in _BEFORE_HEADERS:
        if flags & flag:
            pos += 1 + block[pos]
    return block[pos + 4 : pos + 4 + int.from_bytes(block[pos : pos + 4], "big")]


def read_headers(data: bytes) -> dict[str, Field]:
    """Return the headers that `find_headers` gave."""
    return read_table(data, 0, len(data))

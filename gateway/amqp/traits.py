"""What of a message decides its way besides each of its routing keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gateway.amqp.deaths import split_block
from gateway.amqp.field_table import INTEGERS, Field
from gateway.amqp.header_match import find_headers, read_headers

HASH_HEADER = "hash-header"
HASH_PROPERTY = "hash-property"
PROPERTIES = {"correlation_id": 5, "message_id": 8, "timestamp": 9}
"""The properties that can be hashed, and their numbers in a block."""
DELAY = "x-delay"
DELAY_MS_MAX = 0xFFFF_FFFF  # as of a timer of Erlang: what is more, or less than 1, is no delay
_DIGITS = re.compile(rb"[+-]?[0-9]{1,18}")
NO_BLOCK = b"\x00\x00"

HashedBy = tuple[str, str]
"""`HASH_HEADER` or `HASH_PROPERTY`, and the name of that header or property."""


class Traits:
    """The traits of one message: its headers, its hash, and the choices that were made for it.

    Args:
        key: The routing key that it was published with; copies have others.
        block: Its property block, which was checked.
    """

    __slots__ = ("_block", "_headers", "chosen", "key")

    def __init__(self, key: str, block: bytes = NO_BLOCK) -> None:
        self.key = key
        self.chosen: dict[object, list[object]] = {}  # by exchange: made once, however many keys lead there
        self._block = block
        self._headers: dict[str, Field] | None = None

    @property
    def headers(self) -> Mapping[str, Field]:
        """Its headers."""
        if self._headers is None:
            self._headers = read_headers(find_headers(self._block))
        return self._headers

    def delay_said(self) -> int:
        """Return the milliseconds that the header `x-delay` says, 0 where there is no such number."""
        found = self.headers.get(DELAY)
        if found is None:
            return 0
        if isinstance(found.value, bytes):
            is_number = found.kind == "longstr" and _DIGITS.fullmatch(found.value) is not None
            return int(found.value) if is_number else 0
        if isinstance(found.value, float):
            return int(found.value) if abs(found.value) <= DELAY_MS_MAX else 0
        return int(found.value) if found.kind in INTEGERS and found.value is not None else 0

    def delay_ms(self) -> int:
        """Return how long the message is to wait where it is delayed, 0 where not at all."""
        said = self.delay_said()
        return said if 0 < said <= DELAY_MS_MAX else 0

    def hashed(self, by: HashedBy | None) -> bytes:
        """Return what is hashed: the routing key, or another part; where that is absent, the same for all messages."""
        if by is None:
            return b"k" + self.key.encode()
        source, name = by
        if source == HASH_PROPERTY:
            return b"p" + split_block(self._block).get(PROPERTIES[name], b"")
        found = self.headers.get(name)
        if found is None:
            return b"-"
        kind = "int" if found.kind in INTEGERS else found.kind
        value = found.value if isinstance(found.value, bytes) else repr(found.value).encode()
        return kind.encode() + b":" + value

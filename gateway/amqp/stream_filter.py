"""Which messages a reader of a stream wants: those with one of its filter values, and maybe those with none.

A message's filter value is its header `x-stream-filter-value`; at other doors it is the user property of that name.
What is compared are the values themselves, so nothing comes that was not asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from core.lmq.expiry import move
from core.message import StoredBatch
from gateway.amqp.argument_rules import unacceptable
from gateway.amqp.field_table import Field

FILTER = "x-stream-filter"
MATCH_UNFILTERED = "x-stream-match-unfiltered"
VALUE_MARK = b"x-stream-filter-value\x01"
_SIZE = struct.Struct(">I")
_TEXT = b"S"
_TEXT_HEAD = 5
_END = 2  # of a property


class StreamFilter:
    """The values that a reader wants.

    Args:
        values: They.
        matches_unfiltered: Whether messages without a value are wanted too.
    """

    __slots__ = ("_matches_unfiltered", "_values")

    def __init__(self, values: frozenset[bytes], *, matches_unfiltered: bool) -> None:
        self._values = values
        self._matches_unfiltered = matches_unfiltered

    def apply(self, stored: StoredBatch) -> None:
        """Take out of `stored` what is not wanted."""
        kept = 0
        for i in range(stored.count):
            properties = bytes(stored.buf[stored.properties_start[i] : stored.properties_end[i]])
            value = find_value(properties)
            if value in self._values or (value is None and self._matches_unfiltered):
                if kept < i:
                    move(stored, i, kept)
                kept += 1
        stored.count = kept


def find_value(properties: bytes) -> bytes | None:
    """Return a message's filter value, None where it has none."""
    at = properties.find(VALUE_MARK)
    while at > 0 and properties[at - 1] != _END:
        at = properties.find(VALUE_MARK, at + 1)
    if at < 0:
        return None
    return properties[at + len(VALUE_MARK) :].partition(b"\x02")[0]


def parse_filter(arguments: Mapping[str, Field], what: str) -> StreamFilter | None:
    """Return what a consumer's arguments say, None where they say nothing; `what` says in texts which queue.

    Raises:
        AmqpError: PRECONDITION_FAILED: a value is of a type that it may not be.
    """
    wanted, unfiltered = arguments.get(FILTER), arguments.get(MATCH_UNFILTERED)
    if unfiltered is not None and unfiltered.kind != "bool":
        raise unacceptable(unfiltered, f"invalid arg '{MATCH_UNFILTERED}' for {what}")
    if wanted is None:
        return None
    values = _texts_of(wanted)
    if values is None:
        raise unacceptable(wanted, f"invalid arg '{FILTER}' for {what}")
    return StreamFilter(values, matches_unfiltered=unfiltered is not None and unfiltered.value is True)


def _texts_of(field: Field) -> frozenset[bytes] | None:
    """Return the texts of a text or an array of texts; None for anything else."""
    if not isinstance(field.value, bytes) or field.kind not in {"longstr", "array"}:
        return None
    if field.kind == "longstr":
        return frozenset((field.value,))
    found: set[bytes] = set()
    pos = 0
    while pos < len(field.value):
        if field.value[pos : pos + 1] != _TEXT:
            return None
        end = pos + _TEXT_HEAD + _SIZE.unpack_from(field.value, pos + 1)[0]
        found.add(field.value[pos + _TEXT_HEAD : end])
        pos = end
    return frozenset(found)

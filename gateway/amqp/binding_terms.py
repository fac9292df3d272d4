"""What a binding says besides its key: its arguments, which tell it from others between the same two."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from gateway.amqp.errors import AmqpError
from gateway.amqp.field_table import TABLE_FIELDS_MAX, Field, has_many, read_table, skip_value
from gateway.amqp.header_match import HeaderMatch
from gateway.amqp.reply_codes import ReplyCode

Terms = HeaderMatch | str | None
"""Of a headers exchange what it asks for; of any other its arguments as a JSON object, None where it has none."""


def plain_terms(arguments: Mapping[str, Field]) -> str | None:
    """Return the arguments of a binding that asks nothing of headers, equal where the HTTP API tells the same.

    Integers of all sizes are one type, and so are moments, as JSON has one; texts and other bytes are one, too.

    Raises:
        AmqpError: PRECONDITION_FAILED: They hold too many values, all of which are read at once, and kept.
    """
    return json.dumps(_Reading().table(arguments), sort_keys=True) if arguments else None


class _Reading:
    """Reads arguments, of which tables and arrays hold no more values together than one table may have fields."""

    def __init__(self) -> None:
        self._left = TABLE_FIELDS_MAX

    def table(self, fields: Mapping[str, Field]) -> dict[str, object]:
        self._take(len(fields))
        return {name: self._value(field) for name, field in fields.items()}

    def _value(self, field: Field) -> object:
        value = field.value
        if field.kind == "table":
            assert isinstance(value, bytes)
            if has_many(value, 0, len(value)):
                raise _too_many()
            return self.table(read_table(value, 0, len(value)))
        if field.kind == "array":
            assert isinstance(value, bytes)
            return self._array(value)
        if isinstance(value, bytes):
            return value.decode("utf-8", "backslashreplace")
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has no word for it
        return value

    def _array(self, items: bytes) -> list[object]:
        """Return the items of an array, which was checked."""
        found: list[object] = []
        pos = 0
        while pos < len(items):
            end = skip_value(items, pos)
            unnamed = b"\0" + items[pos:end]
            found += self.table(read_table(unnamed, 0, len(unnamed))).values()
            pos = end
        return found

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _too_many()


def _too_many() -> AmqpError:
    reason = f"arguments of a binding hold more than {TABLE_FIELDS_MAX} values"
    return AmqpError(ReplyCode.PRECONDITION_FAILED, reason)

"""What a binding says besides its key: its arguments, which tell it from others between the same two."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from gateway.amqp.field_table import Field, read_table, skip_value
from gateway.amqp.header_match import HeaderMatch

Terms = HeaderMatch | str | None
"""Of a headers exchange what it asks for; of any other its arguments as a JSON object, None where it has none."""


def plain_terms(arguments: Mapping[str, Field]) -> str | None:
    """Return the arguments of a binding that asks nothing of headers, equal where the HTTP API tells the same.

    Integers of all sizes are one type, and so are moments, as JSON has one; texts and other bytes are one, too.
    """
    return json.dumps(_plain_table(arguments), sort_keys=True) if arguments else None


def _plain_table(fields: Mapping[str, Field]) -> dict[str, object]:
    return {name: _plain(field) for name, field in fields.items()}


def _plain(field: Field) -> object:
    value = field.value
    if field.kind == "table":
        assert isinstance(value, bytes)
        return _plain_table(read_table(value, 0, len(value)))
    if field.kind == "array":
        assert isinstance(value, bytes)
        return _plain_array(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    return value


def _plain_array(items: bytes) -> list[object]:
    """Return the items of an array, which was checked."""
    found: list[object] = []
    pos = 0
    while pos < len(items):
        end = skip_value(items, pos)
        unnamed = b"\0" + items[pos:end]
        found += _plain_table(read_table(unnamed, 0, len(unnamed))).values()
        pos = end
    return found

"""Settings before they are checked: trees of tables, lists and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """Return both trees as one; where both have a value, that of `high` counts."""
    merged = dict(low)
    for name, value in high.items():
        below = merged.get(name)
        merged[name] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def holds(layer: Mapping[str, Any], loc: tuple[int | str, ...]) -> bool:
    """Return whether a tree has something at a place."""
    node: Any = layer
    for part in loc:
        is_there = part in node if isinstance(node, Mapping) else isinstance(node, list) and isinstance(part, int)
        if not is_there:
            return False
        node = node[part]
    return True

"""Tag filters: which messages of a topic a consumer wants."""

from __future__ import annotations

TagFilter = frozenset[bytes] | None
"""The tags that are wanted; None: every message, tagged or not."""

ALL = "*"
TAG = "TAG"  # the kind of expression that these are


def parse_tag_filter(expression: str) -> TagFilter:
    """Return the filter of `a || b`; `*` and nothing want all."""
    if expression in {ALL, ""}:
        return None
    tags = frozenset(tag.strip().encode(errors="replace") for tag in expression.split("||"))
    tags -= {b""}
    return None if not tags or ALL.encode() in tags else tags

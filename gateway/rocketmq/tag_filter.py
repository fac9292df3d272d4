"""Tag filters: which messages of a topic a consumer wants."""

from __future__ import annotations

TagFilter = frozenset[bytes] | None
"""The tags that are wanted; None: every message, tagged or not."""

ALL = "*"
TAG = "TAG"  # the kind of expression that these are


def parse_tag_filter(expression: str) -> TagFilter:
    """Return the filter of `a || b`; `*` alone and nothing want all, and `*` among others is a tag, as elsewhere."""
    if expression in {ALL, ""}:
        return None
    tags = frozenset(tag.strip().encode(errors="replace") for tag in expression.split("||"))
    return tags - {b""} or None

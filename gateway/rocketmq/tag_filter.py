"""Tag filters: which messages of a topic a consumer wants."""

from __future__ import annotations

TagFilter = frozenset[bytes] | None
"""The tags that are wanted; None: every message, tagged or not."""

ALL = "*"
TAG = "TAG"  # the only kind of expression that is known here


class Subscription:
    """What a group wants of one topic; a newer version replaces an older one."""

    __slots__ = ("tags", "version")

    def __init__(self, tags: TagFilter, version: int) -> None:
        self.tags = tags
        self.version = version


def parse_tag_filter(expression: str) -> TagFilter:
    """Return the filter of `a || b`; `*` and nothing want all."""
    if expression in {ALL, ""}:
        return None
    tags = frozenset(tag.strip().encode(errors="replace") for tag in expression.split("||"))
    tags -= {b""}
    return None if not tags or ALL.encode() in tags else tags

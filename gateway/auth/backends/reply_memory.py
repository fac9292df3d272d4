"""What a back end said lately, by keyed digest of what it was asked."""

from __future__ import annotations

from typing import NamedTuple

from gateway.auth.backends.question import Reply, Verdict
from gateway.settings.backends import BackendSettings

BYTES_MAX = 8 * 1024 * 1024  # of one back end: some 20,000 users
ENTRY_BYTES = 300  # of one answer, beside its texts
RULE_BYTES = 2_000  # of a rule, with some topics


class _Known(NamedTuple):
    reply: Reply
    until_ms: int
    size: int


class ReplyMemory:
    """Answers until their time is over, about BYTES_MAX of them; the one that came first goes first.

    Args:
        settings: Says how long.
        bytes_max: What all of them take.
    """

    def __init__(self, settings: BackendSettings, bytes_max: int = BYTES_MAX) -> None:
        self._good_ms = 1000 * settings.cache_s
        self._bad_ms = 1000 * settings.cache_refused_s
        self._bytes_max = bytes_max
        self._bytes = 0
        self._known: dict[bytes, _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, digest: bytes, now_ms: int) -> Reply | None:
        """Return what was answered, None where it is to be asked again."""
        known = self._known.get(digest)
        if known is None:
            return None
        if now_ms >= known.until_ms:
            self._take(digest)
            return None
        return known.reply

    def add(self, digest: bytes, reply: Reply, now_ms: int) -> None:
        """Remember an answer for as long as the settings say, and no longer than it counts."""
        lasts_ms = self._good_ms if reply.verdict is Verdict.YES else self._bad_ms
        until_ms = min(now_ms + lasts_ms, reply.ends_at_ms)
        self._take(digest)
        if until_ms <= now_ms:
            return
        size = ENTRY_BYTES + sum(len(name) + 60 for name in reply.groups) + RULE_BYTES * len(reply.rules)
        self._known[digest] = _Known(reply, until_ms, size)
        self._bytes += size
        while self._bytes > self._bytes_max:
            self._take(next(iter(self._known)))

    def _take(self, digest: bytes) -> None:
        known = self._known.pop(digest, None)
        if known is not None:
            self._bytes -= known.size

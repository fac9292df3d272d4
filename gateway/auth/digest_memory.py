"""A bounded memory of digests: the one that was asked for longest ago goes first."""

from __future__ import annotations

BYTES_EACH = 160  # of an entry, with its place in the dictionary, measured


class DigestMemory:
    """A set of digests that takes about `bytes_max` of memory at most."""

    def __init__(self, bytes_max: int) -> None:
        self._count_max = bytes_max // BYTES_EACH
        self.hits = 0  # digests that were known
        self.misses = 0
        self._digests: dict[bytes, None] = {}  # the one that was asked for longest ago first

    def __len__(self) -> int:
        return len(self._digests)

    def add(self, digest: bytes) -> None:
        """Remember a digest."""
        self._digests.pop(digest, None)
        self._digests[digest] = None
        if len(self._digests) > self._count_max:
            del self._digests[next(iter(self._digests))]

    def knows(self, digest: bytes) -> bool:
        """Return whether a digest is remembered; one that is stays for longer."""
        if digest not in self._digests:
            self.misses += 1
            return False
        self.hits += 1
        del self._digests[digest]
        self._digests[digest] = None
        return True

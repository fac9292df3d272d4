"""A store on a disk that gets full."""

from __future__ import annotations

from core.errors import DiskFullError
from core.store.embedded import EmbeddedEngine


class FullEngine(EmbeddedEngine):
    """Takes `left` more messages, all of them while that is None."""

    left = None

    def append_batch(self, batch, now_ms):
        if self.left is None:
            super().append_batch(batch, now_ms)
            return
        count = batch.count
        if batch.is_whole and count > self.left:
            batch.appended, batch.ticket = 0, self.store.written_until
            raise DiskFullError("full")
        batch.count = min(count, self.left)
        super().append_batch(batch, now_ms)
        batch.count = count
        self.left -= batch.appended
        if batch.appended < count:
            raise DiskFullError("full")

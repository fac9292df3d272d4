"""One number for each owner, in a slot of a mapped file: a cursor's queue offset, say.

Setting one is a single store of 8 bytes, so a killed process leaves the old number or the new one. The upper 16 bits of
a slot are a check over the lower 48, the number; a slot that fails it is damaged and becomes 0.

Source: docs/storage-format.md, "Places".
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from core.errors import DataFolderUnusableError
from core.store.disk import sync_folder
from core.store.growing_file import GrowingFile
from core.store.sync_plan import SyncPlan, sync_now

LOGGER = logging.getLogger(__name__)

VALUE_MIN = -(1 << 47)
VALUE_MAX = (1 << 47) - 1
HEADER = b"LMQPLACE\x00\x00\x00\x00\x00\x00\x00\x01"  # magic and version
_HEADER_SLOTS = 2
_MASK = (1 << 48) - 1
_SYNCS_BEFORE_REUSE = 3


class Places:
    """The slots of one file."""

    def __init__(self, path: Path, file: GrowingFile) -> None:
        self.path = path
        self.damaged_count = 0  # slots that failed their check, and became 0
        self._file = file
        self._slots = memoryview(file.map).cast("Q")
        self._used = bytearray(len(self._slots) - _HEADER_SLOTS)
        self._high = 0  # slots from here on were never given
        self._free: deque[tuple[int, int]] = deque()  # slot, and `_syncs` when it was released
        self._syncs = 0
        self._is_dirty = True
        self._is_named = False

    @classmethod
    def open(cls, path: Path) -> Places:
        """Open the file, or begin a new one. Until `reserve` says which slots have owners, none has.

        Raises:
            DataFolderUnusableError: It is not a file of places of this version.
            DiskFullError: No room for a new one.
        """
        file = GrowingFile(path)
        header = bytes(file.map[: len(HEADER)])
        if not any(header):
            file.map[: len(HEADER)] = HEADER
        elif header != HEADER:
            file.close()
            raise DataFolderUnusableError(str(path), "not a file of places of this version")
        return cls(path, file)

    def reserve(self, slots_in_use: Iterable[int]) -> None:
        """Say, once after `open`, which slots have owners; all others are free.

        Raises:
            DiskFullError: A slot lies after the file's end, and there is no room.
        """
        for slot in slots_in_use:
            while slot >= len(self._used):
                self._grow()
            self._used[slot] = 1
            self._high = max(self._high, slot + 1)
        self._free.clear()
        self._free.extend((slot, -_SYNCS_BEFORE_REUSE) for slot in range(self._high) if not self._used[slot])

    def acquire(self) -> int:
        """Return a slot that nobody has; it holds 0.

        A released slot is given again only after the flush that also made its former owner's end durable: else a
        crash could bring that owner back with the number of another.

        Raises:
            DiskFullError: No room for more slots.
        """
        if self._free and self._free[0][1] + _SYNCS_BEFORE_REUSE <= self._syncs:
            slot, _ = self._free.popleft()
        else:
            slot = self._high
            if slot == len(self._used):
                self._grow()
            self._high += 1
        self._used[slot] = 1
        self.set(slot, 0)
        return slot

    def release(self, slot: int) -> None:
        """Give a slot back."""
        self._check(slot)
        self._used[slot] = 0
        self._free.append((slot, self._syncs))

    def get(self, slot: int) -> int:
        """Return the number in a slot; one that is damaged is told in the log, once, and becomes 0."""
        self._check(slot)
        word = self._slots[slot + _HEADER_SLOTS]
        value = word & _MASK
        if word >> 48 != _fold(value):
            self.damaged_count += 1
            LOGGER.warning("damaged place is 0 from now on path=%s slot=%d was=%016x", self.path, slot, word)
            self.set(slot, 0)
            return 0
        return value if value <= VALUE_MAX else value - (1 << 48)

    def set(self, slot: int, value: int) -> None:
        """Put a number of 48 bits, signed, into a slot."""
        self._check(slot)
        if not VALUE_MIN <= value <= VALUE_MAX:
            raise OverflowError("a place holds 48 bits")
        value &= _MASK
        self._slots[slot + _HEADER_SLOTS] = _fold(value) << 48 | value
        self._is_dirty = True

    @property
    def dirty(self) -> bool:
        """Whether anything was stored that no sync has covered yet."""
        return self._is_dirty

    def begin_sync(self, plan: SyncPlan) -> None:
        """Add to `plan` what forces everything set so far to disk."""
        self._syncs += 1
        if not self._is_dirty:
            return
        self._is_dirty = False
        plan.add_file(self._file.fd, self)
        if not self._is_named:
            plan.add_step(partial(sync_folder, self.path.parent))
            self._is_named = True

    def sync_failed(self) -> None:
        """Let the next plan cover everything again."""
        self._is_dirty = True
        self._is_named = False

    def close(self) -> None:
        """Sync and let go of the file."""
        sync_now(self)
        self._file.close()

    def _check(self, slot: int) -> None:
        if slot < 0 or slot >= len(self._used) or not self._used[slot]:
            raise IndexError("no such place")

    def _grow(self) -> None:
        self._file.grow(self._file.size + 1)
        self._slots = memoryview(self._file.map).cast("Q")
        self._used.extend(bytes(len(self._slots) - _HEADER_SLOTS - len(self._used)))


def _fold(value: int) -> int:
    """Return 16 bits that change with each bit of `value`, and are 0 for 0."""
    return (value ^ value >> 16 ^ value >> 32) & 0xFFFF

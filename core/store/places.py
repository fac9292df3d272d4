"""One number for each owner, in a slot of a mapped file: a cursor's queue offset, say.

A slot has two words, and a number is written over the older one: a single store of 8 bytes, so a killed process leaves
the old number or the new one. Each word has a check; where the newer one fails it, the older one holds the last number
that is known to be right.

Source: docs/storage-format.md, "Places".
"""

from __future__ import annotations

import logging
import zlib
from array import array
from collections import deque
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from core.errors import DataFolderUnusableError
from core.store.disk import replace_file, sync_folder
from core.store.growing_file import GrowingFile
from core.store.sync_plan import SyncPlan, sync_now

LOGGER = logging.getLogger(__name__)

VALUE_MIN = -(1 << 47)  # a signed number of 48 bits
VALUE_MAX = (1 << 47) - 1  # a signed number of 48 bits
HEADER = b"LMQPLACE\x00\x00\x00\x00\x00\x00\x00\x02"  # magic and version
OLD_HEADER = b"LMQPLACE\x00\x00\x00\x00\x00\x00\x00\x01"
SLOT_WORDS = 2  # written in turn: one of them is whole whenever the process is killed
_HEADER_WORDS = 2  # HEADER is 16 bytes
_MASK = (1 << 48) - 1
_TURN = 1 << 48  # above the 48 bits of the number: it says which word was written last
_CHECK_SHIFT = 49  # 48 bits of the number, one of the turn; the check has the 15 above
_CHECKED_MASK = (1 << _CHECK_SHIFT) - 1
_CHECK_MASK = (1 << 15) - 1
_CHECKED_BYTES = 7  # 49 bits, in whole bytes
_SYNCS_BEFORE_REUSE = 3  # by then the end of a slot's former owner is on disk: docs/storage-format.md, "Places"


class Places:
    """The slots of one file."""

    def __init__(self, path: Path, file: GrowingFile) -> None:
        self.path = path
        self.damaged_count = 0  # slots that failed their check
        self._file = file
        self._slots = memoryview(file.map).cast("Q")
        self._used = bytearray(_count_slots(self._slots))
        self._high = 0  # slots from here on were never given
        self._free: deque[tuple[int, int]] = deque()  # slot, and `_syncs` when it was released
        self._syncs = 0
        self._is_dirty = True
        self._is_named = False

    @classmethod
    def open(cls, path: Path) -> Places:
        """Open the file, or begin a new one. Until `reserve` says which slots have owners, none has.

        A file of the version before is replaced by one of this version.

        Raises:
            DataFolderUnusableError: It is not a file of places of this version.
            DiskFullError: No room for a new one.
        """
        if path.exists():
            _convert_old(path)
        file = GrowingFile(path)
        header = bytes(file.map[: len(HEADER)])
        if not any(header):
            file.map[: len(HEADER)] = HEADER
        elif header != HEADER:
            file.close()
            raise DataFolderUnusableError(str(path), _describe(header))
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

    def acquire(self, value: int = 0) -> int:
        """Return a slot that nobody has; it holds `value`.

        A released slot is given again only after the flush that also made its former owner's end durable: else a
        crash could bring that owner back with the number of another.

        Raises:
            DiskFullError: No room for more slots.
        """
        _check_value(value)
        if self._free and self._free[0][1] + _SYNCS_BEFORE_REUSE <= self._syncs:
            slot, _ = self._free.popleft()
        else:
            slot = self._high
            if slot == len(self._used):
                self._grow()
            self._high += 1
        self._used[slot] = 1
        self._fill(slot, value)
        return slot

    def release(self, slot: int) -> None:
        """Give a slot back."""
        self._check(slot)
        self._used[slot] = 0
        self._free.append((slot, self._syncs))

    def get(self, slot: int) -> int:
        """Return the number in a slot, as `find` does; 0 where nothing is known."""
        return self.find(slot) or 0

    def find(self, slot: int) -> int | None:
        """Return the number in a slot, or None where nothing is known of it; it holds 0 then.

        Damage is told in the log, once: where a number that was right before is left, that is it from then on.
        """
        self._check(slot)
        at = _HEADER_WORDS + SLOT_WORDS * slot
        first, second = self._slots[at], self._slots[at + 1]
        good = [word for word in (first, second) if _make_word(word & _CHECKED_MASK) == word]
        if len(good) == SLOT_WORDS:
            return _number(first if (first ^ second) & _TURN else second)
        self.damaged_count += 1
        found = _number(good[0]) if good else None
        if found is None:
            what = "damaged place of which nothing is known is 0 from now on"
        else:
            what = "damaged place holds its last good number from now on"
        was = (first, second)
        LOGGER.warning("%s path=%s slot=%d number=%d was=%016x,%016x", what, self.path, slot, found or 0, *was)
        self._fill(slot, found or 0)
        return found

    def set(self, slot: int, value: int) -> None:
        """Put a number of 48 bits, signed, into a slot; the one before may come back after damage if it is not larger.

        So a reader that has gone back does not skip anything.
        """
        self._check(slot)
        _check_value(value)
        at = _HEADER_WORDS + SLOT_WORDS * slot
        words = self._slots
        first, second = words[at], words[at + 1]
        is_first = bool((first ^ second) & _TURN)
        if value < _number(first if is_first else second):
            self._fill(slot, value)
        elif is_first:
            words[at + 1] = _make_word(value & _MASK | first & _TURN)
        else:
            words[at] = _make_word(value & _MASK | (second & _TURN) ^ _TURN)
        self._is_dirty = True

    def fill(self, slot: int, value: int) -> None:
        """Put a number into a slot so that none before it comes back after damage."""
        self._check(slot)
        _check_value(value)
        self._fill(slot, value)

    def _fill(self, slot: int, value: int) -> None:
        at = _HEADER_WORDS + SLOT_WORDS * slot
        self._slots[at] = self._slots[at + 1] = _make_word(value & _MASK)
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
        self._used.extend(bytes(_count_slots(self._slots) - len(self._used)))


def _describe(header: bytes) -> str:
    """Return what is wrong with a header, and the ways out."""
    return (
        f"not a file of places of this version: bytes 0 to {len(HEADER) - 1} are {header.hex(' ')}; "
        f"if a later version wrote it, start that one; else it is damaged: write {HEADER.hex(' ')} there, which loses "
        "none of its numbers, or remove it: then they are 0, and messages come again"
    )


def _count_slots(words: memoryview) -> int:
    return (len(words) - _HEADER_WORDS) // SLOT_WORDS


def _check_value(value: int) -> None:
    if not VALUE_MIN <= value <= VALUE_MAX:
        raise OverflowError("a place holds 48 bits")


def _make_word(checked: int) -> int:
    """Return the word of a number and its turn: never 0, which a slot never set has."""
    crc = zlib.crc32(checked.to_bytes(_CHECKED_BYTES, "little"))
    return (crc & _CHECK_MASK) << _CHECK_SHIFT | checked


def _number(word: int) -> int:
    value = word & _MASK
    return value if value <= VALUE_MAX else value - (1 << 48)


def _convert_old(path: Path) -> None:
    """Replace a file of version 1, in which a slot is one word with a weaker check.

    Raises:
        DiskFullError: No room for the new file.
    """
    with path.open("rb") as file:
        if file.read(len(OLD_HEADER)) != OLD_HEADER:
            return
        data = file.read()
    old = array("Q", data[: len(data) // 8 * 8])
    made = array("Q", HEADER)
    for word in old:
        value = word & _MASK
        is_good = word >> 48 == (value ^ value >> 16 ^ value >> 32) & 0xFFFF
        made.extend((_make_word(value) if is_good else 0,) * SLOT_WORDS)
    replace_file(path, made.tobytes())
    LOGGER.info("places are of version 2 from now on path=%s", path)

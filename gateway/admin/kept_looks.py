"""Looks at readers' places that outlive the process: one of each reader that moved, every half minute.

A look says that a reader was so far at a moment, which stays true. So a kill loses half a minute of them, and nothing
that is told becomes wrong.

Source: docs/storage-format.md, "Journal of looks".
"""

from __future__ import annotations

import logging
import struct

from core.errors import DiskFullError
from core.record_journal import RecordJournal
from gateway.admin.steps import Steps
from gateway.admin.trail import Look, Reader, Trail

LOGGER = logging.getLogger(__name__)

KEEP_MS = 30_000  # between two looks that are kept: of 4,000 readers that all move 0.3 MB a minute
COMPACT_BYTES_MIN = 1 << 20  # chosen: a smaller journal takes no room or time at a start that is worth the work
COMPACT_RATIO = 2  # a compaction is due when the journal is so many times what the last one left
LOOKS_MAX = 8  # of one reader, that a compaction keeps: of KEEP_MS each, four minutes
NAME_BYTES_MAX = 1_024  # of a reader, or of its consumers; looks at longer ones are not kept
STEP_RECORDS = 64  # read between two looks at the clock, at a start
TEXT, LOOK = 1, 2
PIECE_BYTES = 48  # with the head it fits into a journal's record, which has 64 at most
_TEXT = struct.Struct(">BIB")  # kind, number, pieces that follow
_LOOK = struct.Struct(">BIIqqq")  # kind, numbers of the reader and its consumers, moment, next offset, floor


class KeptLooks:
    """Writes looks, and reads those of processes before.

    Args:
        trail: Where looks are noted.
        journal: Where some of them are written.
    """

    def __init__(self, trail: Trail, journal: RecordJournal) -> None:
        self._trail = trail
        self._journal = journal
        self._numbers: dict[bytes, int] = {}  # of texts
        self._next_number = 1  # 0 is no text
        self._kept: dict[Reader, tuple[int, int]] = {}  # next offset and floor that were written last
        self._kept_ms = 0
        self._compact_at = COMPACT_BYTES_MIN
        self._is_loaded = False

    async def load(self, steps: Steps) -> None:
        """Note what processes before have written, once."""
        if self._is_loaded:
            return
        self._is_loaded = True
        texts: dict[int, bytes] = {}
        for count, record in enumerate(self._journal.replay()):
            if record[0] == TEXT and len(record) > _TEXT.size:
                _, number, _ = _TEXT.unpack_from(record)
                texts[number] = texts.get(number, b"") + record[_TEXT.size :]
                self._next_number = max(self._next_number, number + 1)
            elif record[0] == LOOK and len(record) == _LOOK.size:
                _, name, consumers, at_ms, next_offset, floor = _LOOK.unpack(record)
                queue, _, reader = texts.get(name, b"").partition(b"\0")
                by = texts.get(consumers, b"").decode(errors="replace")
                self._trail.note((queue, reader), at_ms, next_offset, floor, by)
            if count % STEP_RECORDS == 0:
                await steps.rest()
        self._compact_at = max(COMPACT_BYTES_MIN, self._journal.bytes_used)

    async def keep(self, now_ms: int, steps: Steps) -> None:
        """Write a look at each reader that moved, where it is time to; nothing is noted in the trail meanwhile."""
        if now_ms - self._kept_ms < KEEP_MS:
            return
        self._kept_ms = now_ms
        try:
            for reader in self._trail.readers():
                (look,) = self._trail.latest(reader, 1)
                if self._kept.get(reader) != (look.next_offset, look.floor):
                    records = self._records_of(reader, [look])
                    for record in records:
                        self._journal.append_many(record, len(record))
                    if records:  # which bound what is known of them: they fill the journal until it is compacted
                        self._kept[reader] = look.next_offset, look.floor
                await steps.rest()
            if self._journal.bytes_used > self._compact_at:
                await self._compact(steps)
        except DiskFullError as error:
            self._numbers.clear()  # of which some may not be written
            LOGGER.info("looks at places are not kept: %s", error)

    def _records_of(self, reader: Reader, looks: list[Look]) -> list[bytes]:
        """Return the records of looks at a reader, before them texts that they are the first to use."""
        records: list[bytes] = []
        name = self._number(b"%b\0%b" % reader, records)
        for look in looks if name else ():
            by = self._number(look.by.encode(), records)
            records.append(_LOOK.pack(LOOK, name, by, look.at_ms, look.next_offset, look.floor))
        return records

    def _number(self, text: bytes, records: list[bytes]) -> int:
        if not text or len(text) > NAME_BYTES_MAX:
            return 0
        number = self._numbers.get(text, 0)
        if not number:
            number = self._numbers[text] = self._next_number
            self._next_number += 1
            pieces = [text[start : start + PIECE_BYTES] for start in range(0, len(text), PIECE_BYTES)]
            records += [_TEXT.pack(TEXT, number, len(pieces) - at) + piece for at, piece in enumerate(pieces, 1)]
        return number

    async def _compact(self, steps: Steps) -> None:
        """Write the latest looks at all readers in place of what the journal has."""
        journal, trail = self._journal, self._trail
        self._compact_at = journal.bytes_used + COMPACT_BYTES_MIN  # where it does not come to its end
        journal.begin_compaction()
        self._numbers.clear()  # with numbers that were never used: what was written under others goes
        for reader in trail.readers():
            for record in self._records_of(reader, trail.latest(reader, LOOKS_MAX)):
                if not journal.is_compacting:  # the disk is full
                    return
                journal.append_compacted(record, len(record))
            await steps.rest()
        journal.finish_compaction()
        self._kept = {reader: self._kept[reader] for reader in trail.readers() if reader in self._kept}
        self._compact_at = max(COMPACT_BYTES_MIN, COMPACT_RATIO * journal.bytes_used)

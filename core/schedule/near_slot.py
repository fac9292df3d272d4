"""What is due in one minute: of each message its number in the minute's queue, 8 bytes, by the millisecond."""

from __future__ import annotations

import hashlib
import heapq
from array import array

from core.message import StoredBatch
from core.properties import CANCEL, UNIQ_KEY, decode_properties
from core.schedule.slots import NEAR_MS, read_due
from core.schedule.taking_back import identity_of

REAL_TOPIC = b"REAL_TOPIC"
_CANCEL_NAME = CANCEL + b"\x01"

Entry = tuple[int, int]  # when it is due, its number in the queue


def read_texts(found: StoredBatch) -> list[bytes]:
    """Return the encoded properties of what was read; by lists, since a look at a column by its row is dear."""
    count, buf = found.count, memoryview(found.buf)
    starts = memoryview(found.properties_start)[:count].tolist()
    ends = memoryview(found.properties_end)[:count].tolist()
    return [bytes(buf[start:end]) for start, end in zip(starts, ends, strict=True)]


def read_offsets(found: StoredBatch) -> list[int]:
    """Return the numbers in their queue of what was read."""
    return memoryview(found.queue_offset)[: found.count].tolist()


def find_rows(found: StoredBatch, wanted: list[Entry]) -> tuple[list[int], list[Entry]]:
    """Return the rows of what was read in the order of the entries that they are of, and those entries."""
    row_of = {offset: i for i, offset in enumerate(read_offsets(found))}
    there = [entry for entry in wanted if entry[1] in row_of]
    return [row_of[offset] for _, offset in there], there


class NearSlot:
    """One minute, of which the queue is read once.

    Args:
        minute: Counted from 1970.
        queue_ref: Its queue.
        first_offset: Where to begin to read.
        after: The first entry, in the order in which they are due, that was not handed on before.
    """

    def __init__(self, minute: int, queue_ref: int, first_offset: int, after: Entry) -> None:
        self.start_ms = minute * NEAR_MS
        self.end_ms = self.start_ms + NEAR_MS
        self.queue_ref = queue_ref
        self.scanned_until = first_offset
        self.keep_from = -1  # the first message that is due in a later round of the ring
        self._after = after
        self._dues: list[int] = []  # a heap, each moment once
        self._offsets: dict[int, array[int]] = {}
        self._cancelled: set[bytes] = set()  # digests of topic and key

    def take_in(self, found: StoredBatch) -> None:
        """Note the messages of a read of the queue, which went on where the last one ended."""
        for text, offset in zip(read_texts(found), read_offsets(found), strict=True):
            due_ms = read_due(text)
            if due_ms >= self.end_ms:
                self.keep_from = offset if self.keep_from < 0 else self.keep_from
            elif _CANCEL_NAME in text:
                self._note_cancel(text)
            elif due_ms >= 0 and (due_ms, offset) >= self._after:
                self._add(due_ms, offset)
        self.scanned_until = found.next_offset

    def _add(self, due_ms: int, offset: int) -> None:
        offsets = self._offsets.get(due_ms)
        if offsets is None:
            heapq.heappush(self._dues, due_ms)
            self._offsets[due_ms] = array("q", (offset,))
        else:
            offsets.append(offset)

    def _note_cancel(self, text: bytes) -> None:
        said = decode_properties(text)
        topic, key = said.get(REAL_TOPIC, b""), said.get(CANCEL, b"")
        if key.startswith(topic + b"+"):  # else it would take back what is another topic's
            self._cancelled.add(_digest(topic, key[len(topic) + 1 :]))

    def is_cancelled(self, text: bytes) -> bool:
        """Return whether the message with these properties was taken back."""
        if not self._cancelled:
            return False
        said = decode_properties(text)
        return _digest(said.get(REAL_TOPIC, b""), said.get(UNIQ_KEY, b"")) in self._cancelled

    def is_named(self, found: StoredBatch, i: int) -> bool:
        """Return whether a message was taken back by what its record is known by."""
        return bool(self._cancelled) and _digest(b"", identity_of(found, i)) in self._cancelled

    def next_due_ms(self) -> int:
        """Return when the next is due, the minute's end where none is."""
        return self._dues[0] if self._dues else self.end_ms

    def take_due(self, now_ms: int, count_max: int) -> list[Entry]:
        """Remove and return the next that are due, in the order in which they are."""
        found: list[Entry] = []
        while self._dues and self._dues[0] <= now_ms and len(found) < count_max:
            due_ms = self._dues[0]
            offsets = self._offsets[due_ms]
            taken = offsets[: count_max - len(found)]
            found += [(due_ms, offset) for offset in taken]
            if len(taken) == len(offsets):
                heapq.heappop(self._dues)
                del self._offsets[due_ms]
            else:
                self._offsets[due_ms] = offsets[len(taken) :]
        return found


def _digest(topic: bytes, key: bytes) -> bytes:
    """Return 16 bytes that no other topic and key have, so that a recall takes the same room whatever it names."""
    return hashlib.blake2b(b"%b\0%b" % (topic, key), digest_size=16).digest()

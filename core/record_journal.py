"""What a keeper of small records asks of the journal that is handed to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol


class RecordJournal(Protocol):
    """An append-only file of small records, as the store's journals are."""

    path: Path
    is_damaged: bool  # whether something that was written may not be among the records, as it was opened

    @property
    def bytes_used(self) -> int:
        """How much of the file records take."""

    def append_many(self, records: bytes | bytearray | memoryview, size: int) -> None:
        """Append records of `size` bytes each that lie end to end."""

    def sync(self) -> None:
        """Force what was appended to disk before this returns.

        Raises:
            FlushFailedError: The disk refused.
        """

    def replay(self) -> Iterator[bytes]:
        """Give every record, oldest first."""

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction is under way; a full disk ends one."""

    def begin_compaction(self) -> None:
        """Begin to write what is to take the place of all records; what is appended meanwhile is added to it."""

    def append_compacted(self, records: bytes | bytearray | memoryview, size: int) -> None:
        """Append to the compaction under way."""

    def finish_compaction(self) -> None:
        """Put what was compacted in place of all records."""

"""Where a consumer keeps how far it is: at the broker, for the group, or in a file of its own."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from lmq.errors import SdkError
from lmq.queue_access import QueueAccess
from lmq.queues import MessageQueue


class BrokerOffsets:
    """The group's offsets at the brokers: what one member did, another goes on from. `save` makes them safe."""

    def __init__(self, access: QueueAccess) -> None:
        self._access = access
        self._saved: dict[MessageQueue, int] = {}
        self._noted: dict[MessageQueue, int] = {}
        self._saving = asyncio.Lock()  # an older offset is never committed behind a newer one

    async def load(self, queue: MessageQueue) -> int | None:
        """Return the group's offset."""
        self._saved.pop(queue, None)  # others may have committed since
        return await self._access.committed(queue)

    def note(self, queue: MessageQueue, offset: int) -> None:
        """Note the offset to go on at."""
        if self._saved.get(queue) != offset or queue in self._noted:  # another that is noted may be under way
            self._noted[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """Commit nothing more of a queue: it is another's, who may be further by the time that a commit succeeds."""
        self._noted.pop(queue, None)

    async def save(self) -> None:
        """Commit what was noted, at all brokers that can be reached; raise the last error of the others."""
        failed: SdkError | None = None
        async with self._saving:
            for queue in list(self._noted):
                offset = self._noted.get(queue)
                if offset is None:  # it was forgotten meanwhile
                    continue
                try:
                    await self._access.commit(queue, offset)
                except SdkError as error:
                    failed = error
                    continue
                self._saved[queue] = offset
                if self._noted.get(queue) == offset:  # no other came meanwhile
                    del self._noted[queue]
        if failed is not None:
            raise failed


class FileOffsets:
    """Offsets in a file, for a consumer that gets all messages by itself. `save` makes them safe.

    The file is never changed: a new one takes its place when it is on the disk, so a crash leaves the old or the new.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offsets: dict[MessageQueue, int] | None = None
        self._is_changed = False

    async def load(self, queue: MessageQueue) -> int | None:
        """Return the offset in the file.

        Raises:
            SdkError: There is a file, and it cannot be read.
        """
        if self._offsets is None:
            self._offsets = await asyncio.to_thread(self._read)
        return self._offsets.get(queue)

    def note(self, queue: MessageQueue, offset: int) -> None:
        """Note the offset to go on at."""
        if self._offsets is None:
            self._offsets = {}
        if self._offsets.get(queue) != offset:
            self._offsets[queue] = offset
            self._is_changed = True

    def forget(self, queue: MessageQueue) -> None:
        """Keep the offset: nobody else goes by it."""

    async def save(self) -> None:
        """Write the file anew if an offset changed."""
        if not self._is_changed or self._offsets is None:
            return
        rows = [{**queue._asdict(), "offset": offset} for queue, offset in sorted(self._offsets.items())]
        self._is_changed = False
        try:
            await asyncio.to_thread(self._write, json.dumps({"offsets": rows}, indent=1))
        except OSError:
            self._is_changed = True
            raise

    def _read(self) -> dict[MessageQueue, int]:
        try:
            rows: list[dict[str, Any]] = json.loads(self._path.read_text())["offsets"]
            return {MessageQueue(row["topic"], row["broker_name"], row["queue_id"]): int(row["offset"]) for row in rows}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise SdkError(f"cannot read the offsets in {self._path}: {error}") from error

    def _write(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(f"{self._path.name}.new")
        with beside.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

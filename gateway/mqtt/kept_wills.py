"""Wills as they are written down, and a mark for each that says whether it is over.

A will is over when its client leaves, or when it was published; nobody is answered for that, so nobody waits until the
end of its row is committed. So the row names a place, which is marked at once: a process that is killed before the
commit has the row again, and does not publish it.

Source: docs/storage-format.md, "Definitions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from core.errors import DiskFullError, LmqError
from gateway.mqtt.session import NO_SLOT
from gateway.mqtt.session_loader import PlacesTable, TableLike
from gateway.mqtt.session_rows import StoredWill, pack_will, parse_will, slot_of_will

OVER = 1  # in the place of a will; 0 before


class KeptWills:
    """The rows of all wills of a door.

    Args:
        rows: The table of wills, by client.
        places: Where their marks are.
        when_kept: Calls back when all changes so far are kept.
    """

    def __init__(
        self,
        rows: TableLike,
        places: PlacesTable,
        when_kept: Callable[[Callable[[LmqError | None], None]], None],
    ) -> None:
        self._rows = rows
        self._places = places
        self._when_kept = when_kept
        self._free: list[int] = []  # slots that no row will name any more

    def slots(self) -> Iterator[int]:
        """Give the slots that are in use at the start."""
        found = (slot_of_will(item[1]) for item in self._rows.items())
        return (slot for slot in found if slot != NO_SLOT)

    def read(self) -> list[StoredWill]:
        """Return the wills that a process before left; those that were over are removed."""
        left = []
        for client_id, row in list(self._rows.items()):
            stored = parse_will(client_id, row)
            if stored.slot != NO_SLOT and self._places.get(stored.slot) == OVER:
                self.forget(stored)
            else:
                left.append(stored)
        return left

    def keep(self, stored: StoredWill) -> None:
        """Write down a new or changed will, so that it is published also when the process is killed.

        One that finds no room for a place has no mark: once it is over, that counts from the next commit on.
        """
        if stored.slot == NO_SLOT:
            with suppress(DiskFullError):
                stored.slot = self._places.acquire()
        self._rows.put(stored.client_id, pack_will(stored))

    def forget(self, stored: StoredWill) -> None:
        """Remove a will: it is over from now on, whatever happens to the process."""
        if stored.slot != NO_SLOT:
            self._places.set(stored.slot, OVER)
        self._rows.delete(stored.client_id)
        self.note_replaced(stored)

    def note_replaced(self, stored: StoredWill) -> None:
        """Take note that the row of a will is another's now, or nobody's: `give_back` has its slot."""
        if stored.slot != NO_SLOT:
            self._free.append(stored.slot)
            stored.slot = NO_SLOT

    def give_back(self) -> None:
        """Let others have the slots of wills that are over, as soon as that is kept.

        To be called once in a while: each call may begin a commit.
        """
        if self._free:
            slots, self._free = self._free, []
            self._when_kept(partial(self._release, slots))

    def _release(self, slots: list[int], error: LmqError | None) -> None:
        for slot in slots if error is None else ():
            self._places.release(slot)

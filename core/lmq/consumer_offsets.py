"""How far each RocketMQ group is on each queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from core.long_list import make_long_list

LOGGER = logging.getLogger(__name__)

_SLOT_BYTES = 4  # of a slot's number, in a row: 4 billion groups and queues


class SlotTable(Protocol):
    """A durable map, as the store's tables are."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or None."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def delete(self, key: bytes) -> None:
        """Remove `key`."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys and values."""

    def list_keys(self) -> list[bytes]:
        """Return all keys."""


class SlotPlaces(Protocol):
    """Numbers in slots that outlive a killed process, as the store's places are."""

    def reserve(self, slots_in_use: Iterator[int]) -> None:
        """Say which slots have owners."""

    def acquire(self, value: int) -> int:
        """Return a free slot, with a number in it."""

    def release(self, slot: int) -> None:
        """Give a slot back."""

    def get(self, slot: int) -> int:
        """Return the number in a slot."""

    def find(self, slot: int) -> int | None:
        """Return the number in a slot, or None, once, where it is lost; it is 0 then."""

    def set(self, slot: int, value: int) -> None:
        """Put a number into a slot."""


class ConsumerOffsets:
    """The next offset of each group on each queue.

    A row of the table names the slot of a (queue, group); a commit is one store into that slot. A group of which damage
    has left nothing goes on at 0: it may get messages again, but misses none.

    Args:
        table: Rows of `queue key 0x00 group` and a slot; no queue key holds a zero byte.
        places: Slots that nobody else uses.
    """

    def __init__(self, table: SlotTable, places: SlotPlaces) -> None:
        self.on_first: Callable[[bytes, bytes, int], None] = _nothing  # group, queue, offset: before a first one is set
        self._table = table
        self._places = places
        places.reserve(_slot_of(item[1]) for item in table.items())
        for key, row in table.items():
            if places.find(_slot_of(row)) is None:
                queue_key, _, group = key.partition(b"\0")
                told = (group.decode(errors="replace"), queue_key.decode(errors="replace"))
                LOGGER.warning("a group's offset is lost to damage: it goes on at 0 group=%s queue=%s", *told)

    def get(self, group: bytes, queue_key: bytes) -> int | None:
        """Return the offset that the group goes on at, or None where it never committed one."""
        row = self._table.get(_key_of(group, queue_key))
        return None if row is None else self._places.get(_slot_of(row))

    def commit(self, group: bytes, queue_key: bytes, offset: int, *, has_begun: bool = False) -> None:
        """Set the offset that the group goes on at, forwards or backwards.

        Args:
            group: The group.
            queue_key: The queue.
            offset: The next one that the group wants.
            has_begun: Where a first offset comes from is known already: `on_first` is not called.

        Raises:
            DiskFullError: No room for one more group and queue.
        """
        key = _key_of(group, queue_key)
        row = self._table.get(key)
        if row is not None:
            self._places.set(_slot_of(row), offset)
            return
        slot = self._places.acquire(offset)
        if not has_begun:
            self.on_first(group, queue_key, offset)
        self._table.put(key, slot.to_bytes(_SLOT_BYTES, "big"))

    def items(self) -> Iterator[tuple[bytes, bytes, int]]:
        """Give group, queue key and offset of each commit; they may come and go meanwhile."""
        left = make_long_list(self._table.list_keys())
        left.reverse()
        while left:  # each is let go of at its turn: a hundred thousand in one go are milliseconds
            key = left.pop()
            row = self._table.get(key)
            if row is not None:
                queue_key, _, group = key.partition(b"\0")
                yield group, queue_key, self._places.get(_slot_of(row))

    def forget(self, group: bytes, queue_key: bytes) -> None:
        """Drop what the group committed on the queue; harmless where it did not."""
        key = _key_of(group, queue_key)
        row = self._table.get(key)
        if row is not None:
            self._table.delete(key)
            self._places.release(_slot_of(row))


def _nothing(_group: bytes, _queue_key: bytes, _offset: int) -> None:
    return


def _key_of(group: bytes, queue_key: bytes) -> bytes:
    return queue_key + b"\0" + group


def _slot_of(row: bytes) -> int:
    return int.from_bytes(row, "big")

"""How far the timer is, durably: all that is due before a moment was handed on, and of that moment so many.

Three numbers: the moment, and twice how many, of which the moment's lowest bit says which one counts. So one store of
8 bytes moves both. A number of messages bears the last bits of its moment, so that it says nothing of another.
"""

from __future__ import annotations

from core.engine import Places, Table

_ROW = b"places"  # there once they are
_SLOTS = 3  # of the moment, and of its number in turns: the pair is never half written
_MOMENT = 0
_TAG_SHIFT = 40  # with the six bits of the tag it stays within the 48 bits that places hold
_TAG_MASK = 0x3F
_OFFSET_MASK = (1 << _TAG_SHIFT) - 1


class Progress:
    """The first entry, a moment and a number in its queue, that was not handed on for certain."""

    def __init__(self, table: Table, places: Places) -> None:
        self._places = places
        if table.get(_ROW) is None:
            places.reserve(())
            for _ in range(_SLOTS):
                places.acquire()
            table.put(_ROW, b"")
        else:
            places.reserve(range(_SLOTS))

    def load(self) -> tuple[int, int]:
        """Return the entry; a moment of 0 where nothing was ever handed on, or nothing is known."""
        moment = self._places.get(_MOMENT)
        due_ms, number = moment >> 1, 1 + (moment & 1)
        place = self._places.get(number)
        return due_ms, place & _OFFSET_MASK if place >> _TAG_SHIFT == due_ms & _TAG_MASK else 0

    def save(self, due_ms: int, offset: int) -> None:
        """Set the entry."""
        places = self._places
        moment = places.get(_MOMENT)
        place = (due_ms & _TAG_MASK) << _TAG_SHIFT | offset & _OFFSET_MASK
        if moment >> 1 == due_ms:
            places.set(1 + (moment & 1), place)
            return
        other = 1 - (moment & 1)
        places.set(1 + other, place)
        places.set(_MOMENT, due_ms << 1 | other)

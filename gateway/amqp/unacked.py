"""What a channel has delivered and not seen acknowledged: delivery tag -> queue and queue offset, in a ring.

Tags are given in order, so a tag's place in the ring is arithmetic. A few tags that stay unacknowledged while others go
on would make the ring grow without bound: they move to a map instead.

Source: docs/protocols/amqp.md, "Acknowledgements".
"""

from __future__ import annotations

from array import array

from core import octets
from core.message import StoredBatch

ACK = 0  # done
REQUEUE = 1  # to be shown again
DROP = 2  # rejected for good; done too, but counted
_ACK = ACK
_REQUEUE = REQUEUE
_DROP = DROP
_BASIC_ACK = 0x003C0050
_BASIC_REJECT = 0x003C005A
_BASIC_NACK = 0x003C0078
_SETTLE_SIZE = 21  # a whole frame of any of the three

ROOM_AT_FIRST = 16  # a power of two; it doubles
LATE_FROM = 1_024  # tags in the ring before some are moved to the map


def is_settle(buf: bytes | bytearray | memoryview, pos: int, end: int) -> bool:
    """Return whether a whole ack, nack or reject frame is at `pos`."""
    if pos + _SETTLE_SIZE > end or octets.read_u32(buf, pos + 3) != 13:
        return False
    index = octets.read_u32(buf, pos + 7)
    return index in (_BASIC_ACK, _BASIC_NACK, _BASIC_REJECT)


class UnackedRing:
    """The unacknowledged deliveries of one channel.

    A slot stands for one consumer (or one queue read by get); `in_flight[slot]` counts its unacknowledged deliveries,
    and `got` those of all gets, which no prefetch bounds.
    What a run of acknowledgements settles is put into the columns `settled_*`, the first `settled_count` of them. On a
    transactional channel it is put into `held`, by tag, and settled at the commit.
    """

    def __init__(self) -> None:
        self.first_tag = 1  # the oldest in the ring
        self.next_tag = 1
        self.live = 0  # in the ring and in the map
        self.got = 0
        self.in_flight = array("i", bytes(4 * 4))
        self._is_of_gets = array("i", bytes(4 * 4))  # by slot
        self.settled_count = 0
        self.settled_slot = array("i", bytes(4 * ROOM_AT_FIRST))
        self.settled_kind = array("i", bytes(4 * ROOM_AT_FIRST))
        self.settled_offset = array("q", bytes(8 * ROOM_AT_FIRST))
        self.unknown_tag = 0  # as signed
        self.unknown_in = 0  # class and method of the frame that had it, 0 where there is none
        self.held: dict[int, int] | None = None  # kind by tag; None on a channel without transactions
        self._slot = array("i", bytes(4 * ROOM_AT_FIRST))
        self._offset = array("q", bytes(8 * ROOM_AT_FIRST))
        self._mask = ROOM_AT_FIRST - 1  # the ring's room is a power of two
        self._late: dict[int, tuple[int, int]] = {}
        self._known_from = 1  # what the ring has of earlier tags is not theirs

    @property
    def room(self) -> int:
        """How many tags the ring has room for now."""
        return self._mask + 1

    def oldest_tag(self) -> int:
        """Return the oldest tag that is unacknowledged; there is one."""
        return next(iter(self._late), self.first_tag)

    def slot_of(self, tag: int) -> int:
        """Return the slot of an unacknowledged tag."""
        return self._late[tag][0] if tag < self.first_tag else self._slot[tag & self._mask]

    def take_slot(self, slot: int, is_of_gets: bool) -> None:
        """Make room for `slot`, of which nothing is unacknowledged; `is_of_gets`: no consumer has it."""
        size = len(self.in_flight)
        if slot >= size:
            grown = array("i", bytes(8 * max(slot, size)))
            of_gets = array("i", bytes(8 * max(slot, size)))
            for i in range(size):
                grown[i] = self.in_flight[i]
                of_gets[i] = self._is_of_gets[i]
            self.in_flight = grown
            self._is_of_gets = of_gets
        self._is_of_gets[slot] = is_of_gets

    def push(self, stored: StoredBatch, slot: int) -> int:
        """Give tags to all of `stored`, unacknowledged until settled; return the first of them."""
        count = stored.count
        first = self.next_tag
        self._make_room(count)
        for i in range(count):
            place = (first + i) & self._mask
            self._slot[place] = slot
            self._offset[place] = stored.queue_offset[i]
        self.next_tag = first + count
        self.live += count
        self.in_flight[slot] += count
        if self._is_of_gets[slot]:
            self.got += count
        return first

    def skip(self, count: int) -> int:
        """Give `count` tags to deliveries that need no acknowledgement; return the first of them."""
        first = self.next_tag
        if self.live == len(self._late):
            self.first_tag = self._known_from = first + count
        else:
            self._make_room(count)
            for i in range(count):
                self._slot[(first + i) & self._mask] = -1
        self.next_tag = first + count
        return first

    def _make_room(self, count: int) -> None:
        used = self.next_tag - self.first_tag
        if used + count <= self._mask + 1:
            return
        if used >= LATE_FROM and (self.live - len(self._late)) * 4 < used:
            self._move_late()
            used = self.next_tag - self.first_tag
        room = self._mask + 1
        while used + count > room:
            room *= 2
        if room > self._mask + 1:
            self._grow(room)

    def holds(self, slot: int, offset: int) -> bool:
        """Return whether a message is unacknowledged in a slot."""
        for tag in range(self.first_tag, self.next_tag):
            place = tag & self._mask
            if self._offset[place] == offset and self._slot[place] == slot:
                return True
        return (slot, offset) in self._late.values()

    def has_settled(self, slot: int, offset: int, from_tag: int) -> bool:
        """Return whether a message was acknowledged or dropped in a slot, among the last deliveries.

        The ring remembers as many as it has room for; none of before `from_tag`, when the slot was another's.
        """
        for tag in range(max(self.next_tag - self._mask - 1, self._known_from, from_tag), self.next_tag):
            place = tag & self._mask
            if self._offset[place] == offset and self._slot[place] in (-2 - 3 * slot - _ACK, -2 - 3 * slot - _DROP):
                return True
        return False

    def _move_late(self) -> None:
        """Empty the ring into the map: most of it is settled, and the rest stays longer than others."""
        for tag in range(self.first_tag, self.next_tag):
            place = tag & self._mask
            if self._slot[place] >= 0:
                self._late[tag] = (self._slot[place], self._offset[place])
        self.first_tag = self.next_tag

    def _grow(self, room: int) -> None:
        slots = array("i", bytes(4 * room))
        offsets = array("q", bytes(8 * room))
        for tag in range(self.first_tag, self.next_tag):
            slots[tag & (room - 1)] = self._slot[tag & self._mask]
            offsets[tag & (room - 1)] = self._offset[tag & self._mask]
        self._slot = slots
        self._offset = offsets
        self._mask = room - 1

    def cut_settles(self, buf: bytes | bytearray | memoryview, pos: int, end: int, channel: int) -> int:
        """Settle what the run of ack, nack and reject frames on `channel` at `pos` says; return the position after it.

        A tag that is not unacknowledged ends the run: it stands in `unknown_tag`, its method in `unknown_in`; else
        that is 0.
        """
        self.settled_count = 0
        self.unknown_in = 0
        while is_settle(buf, pos, end):
            if buf[pos] != 1 or octets.read_u16(buf, pos + 1) != channel or buf[pos + 20] != 0xCE:
                break
            index = octets.read_u32(buf, pos + 7)
            tag = octets.read_i64(buf, pos + 11)  # a tag over 2**63 - 1 is negative here, and unknown like any other
            bits = buf[pos + 19]
            pos += _SETTLE_SIZE
            kind = _ACK
            if index == _BASIC_NACK:
                kind = _REQUEUE if bits & 2 else _DROP
            elif index == _BASIC_REJECT:
                kind = _REQUEUE if bits & 1 else _DROP
            is_multiple = index != _BASIC_REJECT and bits & 1 == 1
            if not self._settle(tag, kind, is_multiple):
                self.unknown_tag = tag
                self.unknown_in = index
                break
        return pos

    def settle(self, tag: int, kind: int, *, multiple: bool) -> bool:
        """Settle one tag, or all up to it (tag 0: all); False where `tag` is not unacknowledged."""
        self.settled_count = 0
        return self._settle(tag, kind, multiple)

    def settle_oldest(self, count: int, kind: int) -> None:
        """Settle the oldest ones, about so many of those in the ring, or everything; nothing is held."""
        self.settled_count = 0
        tag = self.first_tag + count - 1
        while self.first_tag < tag < self.next_tag - 1 and self._slot[tag & self._mask] < 0:
            tag -= 1
        self._settle(tag if self._is_live(tag) else 0, kind, True)

    def settle_rest(self, kind: int) -> None:
        """Settle everything that is not held, oldest first."""
        self.settled_count = 0
        held, self.held = self.held, None
        for tag in self._live_tags(self.next_tag):
            if held is None or tag not in held:
                self._settle(tag, kind, False)
        self.held = held

    def settle_held(self, held: dict[int, int]) -> None:
        """Settle what was held, as far as it is unacknowledged still."""
        self.settled_count = 0
        now_held, self.held = self.held, None
        for tag, kind in held.items():
            self._settle(tag, kind, False)
        self.held = now_held

    def _hold(self, held: dict[int, int], tag: int, kind: int, is_multiple: bool) -> bool:
        if not is_multiple or tag:
            if not self._is_live(tag) or tag in held:
                return False
        else:
            tag = self.next_tag
        if not is_multiple:
            held[tag] = kind
            return True
        for each in self._live_tags(tag + 1):
            held.setdefault(each, kind)
        return True

    def _live_tags(self, end: int) -> list[int]:
        """Return the unacknowledged tags below `end`, oldest first."""
        late = sorted([tag for tag in self._late if tag < end])
        return late + [
            tag for tag in range(self.first_tag, min(end, self.next_tag)) if self._slot[tag & self._mask] >= 0
        ]

    def _settle(self, tag: int, kind: int, is_multiple: bool) -> bool:
        if self.held is not None:
            return self._hold(self.held, tag, kind, is_multiple)
        if tag == 0 and is_multiple:
            tag = self.next_tag - 1
        elif not self._is_live(tag):
            return False
        if self._late:
            self._settle_late(tag, kind, is_multiple)
        if is_multiple:
            for each in range(self.first_tag, tag + 1):
                self._put(each & self._mask, kind)
        elif tag >= self.first_tag:
            self._put(tag & self._mask, kind)
        while self.first_tag < self.next_tag and self._slot[self.first_tag & self._mask] < 0:
            self.first_tag += 1
        return True

    def _is_live(self, tag: int) -> bool:
        if tag < self.first_tag:
            return tag in self._late
        return tag < self.next_tag and self._slot[tag & self._mask] >= 0

    def _settle_late(self, tag: int, kind: int, is_multiple: bool) -> None:
        tags = [late for late in self._late if late <= tag] if is_multiple else [tag]
        for each in tags:
            found = self._late.pop(each, None)
            if found is not None:
                self._note(found[0], found[1], kind)

    def _put(self, place: int, kind: int) -> None:
        slot = self._slot[place]
        if slot >= 0:
            self._slot[place] = -2 - 3 * slot - kind  # of skipped tags it is -1
            self._note(slot, self._offset[place], kind)

    def _note(self, slot: int, offset: int, kind: int) -> None:
        i = self.settled_count
        if i == len(self.settled_offset):
            self._grow_settled(2 * i)
        self.settled_slot[i] = slot
        self.settled_offset[i] = offset
        self.settled_kind[i] = kind
        self.settled_count = i + 1
        self.in_flight[slot] -= 1
        self.live -= 1
        if self._is_of_gets[slot]:
            self.got -= 1

    def _grow_settled(self, room: int) -> None:
        slots = array("i", bytes(4 * room))
        kinds = array("i", bytes(4 * room))
        offsets = array("q", bytes(8 * room))
        for i in range(self.settled_count):
            slots[i] = self.settled_slot[i]
            kinds[i] = self.settled_kind[i]
            offsets[i] = self.settled_offset[i]
        self.settled_slot = slots
        self.settled_kind = kinds
        self.settled_offset = offsets

    def is_uniform(self) -> bool:
        """Return whether all that was settled is of one slot and kind."""
        for i in range(1, self.settled_count):
            if self.settled_slot[i] != self.settled_slot[0] or self.settled_kind[i] != self.settled_kind[0]:
                return False
        return True

    def collect(self, slot: int, kind: int, into: array[int]) -> int:
        """Copy the settled offsets of one slot and kind to `into`, which has room for all; return how many."""
        count = 0
        for i in range(self.settled_count):
            if self.settled_slot[i] == slot and self.settled_kind[i] == kind:
                into[count] = self.settled_offset[i]
                count += 1
        return count

    def settled_slots(self) -> list[tuple[int, int]]:
        """Return the distinct pairs of slot and kind in what was settled."""
        return sorted({(self.settled_slot[i], self.settled_kind[i]) for i in range(self.settled_count)})

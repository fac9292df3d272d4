"""Which messages at QoS 1 a session was sent and has not acknowledged.

Messages are numbered in the order of sending; the number gives the packet identifier and the place in a ring, so an
acknowledgement is arithmetic. They leave the ring at its old end: what is acknowledged out of order waits there for
what is older. Each belongs to a source, a small number of the session's own for one subscription.
"""

from __future__ import annotations

from array import array

from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, StoredBatch
from gateway.mqtt.codec import RunColumns

WINDOW_MAX = 32_767  # half of the packet identifiers: a late acknowledgement is never taken for a newer message's
ID_COUNT = 65_535
_ID_COUNT = ID_COUNT
_FLAG_MARK = FLAG_MARK
_FLAG_MARK_MASK = FLAG_MARK_MASK
_FLAG_QOS_MASK = FLAG_QOS_MASK
_CAPACITY_MIN = 16


def _ints(size: int) -> array[int]:
    return array("i", bytes(4 * size))


def _longs(size: int) -> array[int]:
    return array("q", bytes(8 * size))


class InflightWindow:
    """The ring of one session; it grows with what is in flight, up to `window_max`, itself at most WINDOW_MAX.

    Messages [`tail`, `head`) are in it. The first `touched_count` of `touched_source` are the sources of what left it
    in the last call of `acknowledge` or `drop`.
    """

    def __init__(self, window_max: int) -> None:
        self.window_max = window_max
        self.head = 0
        self.tail = 0
        self.touched_count = 0
        self._touched = _ints(1)
        self._floors = _longs(1)
        self._counts = _ints(1)
        self._touched_at = _longs(1)
        self._turn = 0
        self._mask = _CAPACITY_MIN - 1
        self._offsets = _longs(_CAPACITY_MIN)
        self._sources = _ints(_CAPACITY_MIN)  # ~source where acknowledged

    def add_source(self, source: int) -> None:
        """Make room for what is known of `source`, a number from 0."""
        size = len(self._counts)
        if source >= size:
            more = max(source + 1, 2 * size)
            self._touched = _copied(self._touched, _ints(more), size)
            self._counts = _copied(self._counts, _ints(more), size)
            self._floors = _copied(self._floors, _longs(more), size)
            self._touched_at = _copied(self._touched_at, _longs(more), size)

    def room(self) -> int:
        """Return how many more messages may be sent."""
        return self.window_max - (self.head - self.tail)

    def next_id(self) -> int:
        """Return the packet identifier of the message that is sent next."""
        return self.head % _ID_COUNT + 1

    def touched_source(self, i: int) -> int:
        """Return one of the sources of what left in the last call."""
        return self._touched[i]

    def count_of(self, source: int) -> int:
        """Return how many messages of `source` are in the ring."""
        return self._counts[source]

    def floor_of(self, source: int) -> int:
        """Return the queue offset after the newest message of `source` that left the ring."""
        return self._floors[source]

    def source_of(self, number: int) -> int:
        """Return the source of a message in the ring, which is not acknowledged."""
        return self._sources[number & self._mask]

    def offset_of(self, number: int) -> int:
        """Return the queue offset of a message in the ring."""
        return self._offsets[number & self._mask]

    def push(self, batch: StoredBatch, source: int) -> int:
        """Enter the messages of `batch` that go out at QoS 1, for which there is room; return how many."""
        before = self.head
        for i in range(batch.count):
            if batch.flag[i] & _FLAG_MARK_MASK != _FLAG_MARK or batch.flag[i] & _FLAG_QOS_MASK:
                self._enter(source, batch.queue_offset[i])
        self._counts[source] += self.head - before
        return self.head - before

    def push_one(self, source: int, offset: int) -> int:
        """Enter one message, for which there is room; return its number."""
        self._enter(source, offset)
        self._counts[source] += 1
        return self.head - 1

    def _enter(self, source: int, offset: int) -> None:
        if self.head - self.tail > self._mask:
            self._resize(2 * (self._mask + 1))
        slot = self.head & self._mask
        self._offsets[slot] = offset
        self._sources[slot] = source
        self.head += 1

    def _resize(self, capacity: int) -> None:
        offsets = _longs(capacity)
        sources = _ints(capacity)
        for number in range(self.tail, self.head):
            offsets[number & (capacity - 1)] = self._offsets[number & self._mask]
            sources[number & (capacity - 1)] = self._sources[number & self._mask]
        self._offsets = offsets
        self._sources = sources
        self._mask = capacity - 1

    def shrink(self) -> None:
        """Give back the memory that what is in flight does not need."""
        capacity = _CAPACITY_MIN
        while capacity < self.head - self.tail:
            capacity *= 2
        if capacity <= self._mask:
            self._resize(capacity)

    def acknowledge(self, columns: RunColumns) -> int:
        """Take a run of acknowledgements, unknown ones ignored; return how many were in flight."""
        packet_ids = columns.packet_ids
        acked = 0
        first_id = self.tail % _ID_COUNT + 1
        in_flight = self.head - self.tail
        for i in range(columns.ack_count):
            ahead = packet_ids[i] - first_id
            if ahead < 0:
                ahead += _ID_COUNT
            slot = (self.tail + ahead) & self._mask
            if ahead < in_flight and self._sources[slot] >= 0:
                self._sources[slot] = ~self._sources[slot]
                acked += 1
        self._settle()
        return acked

    def drop(self, number: int) -> None:
        """Take one message of the ring as acknowledged: it cannot be sent again."""
        if self._sources[number & self._mask] >= 0:
            self._sources[number & self._mask] = ~self._sources[number & self._mask]
        self._settle()

    def _settle(self) -> None:
        """Let go of what is acknowledged at the old end."""
        self._turn += 1
        self.touched_count = 0
        while self.tail < self.head:
            slot = self.tail & self._mask
            source = ~self._sources[slot]
            if source < 0:
                break
            self._floors[source] = self._offsets[slot] + 1
            self._counts[source] -= 1
            self.tail += 1
            if self._touched_at[source] != self._turn:
                self._touched_at[source] = self._turn
                self._touched[self.touched_count] = source
                self.touched_count += 1

    def next_unacked(self, number: int) -> int:
        """Return the first message from `number` on that is not acknowledged, or `head`."""
        number = max(number, self.tail)
        while number < self.head and self._sources[number & self._mask] < 0:
            number += 1
        return number

    def run_length(self, number: int, count_max: int) -> int:
        """Return how many messages from `number` on are not acknowledged and follow each other in one queue."""
        count = 1
        source = self._sources[number & self._mask]
        offset = self._offsets[number & self._mask]
        while count < count_max and number + count < self.head:
            slot = (number + count) & self._mask
            if self._sources[slot] != source or self._offsets[slot] != offset + count:
                break
            count += 1
        return count


def _copied(old: array[int], new: array[int], size: int) -> array[int]:
    for i in range(size):
        new[i] = old[i]
    return new

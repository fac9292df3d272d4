"""Which messages at QoS 1 and 2 a session was sent and has not acknowledged.

Messages are numbered in the order of sending; the number gives the packet identifier and the place in a ring, so an
acknowledgement is arithmetic. They leave the ring at its old end: what is acknowledged out of order waits there for
what is older, and takes no place of what may be in flight. Each belongs to a source, a small number of the session's
own for one subscription. One at QoS 2 is acknowledged in two steps: the client has it (PUBREC), and has done with it
(PUBCOMP).
"""

from __future__ import annotations

from array import array

from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, StoredBatch
from gateway.mqtt.columns import RunColumns

# Where a message of the window is.
ONCE_SENT = 0  # at QoS 1
EXACT_SENT = 1  # at QoS 2, from here on
EXACT_RECEIVED = 2  # the client has it
EXACT_COMPLETE = 3
_ONCE_SENT = ONCE_SENT
_EXACT_SENT = EXACT_SENT
_EXACT_RECEIVED = EXACT_RECEIVED
_EXACT_COMPLETE = EXACT_COMPLETE
_PUBACK = 4
_PUBREC = 5
_NOT_FOUND = 0x92
_FAILED = 0x80
WINDOW_MAX = 32_767  # half of the packet identifiers: a late acknowledgement is never taken for a newer message's
SPAN_MIN = 4_096  # of the ring, where what it waits for is its oldest message alone: 64 KiB
_WINDOW_MAX = WINDOW_MAX
_SPAN_MIN = SPAN_MIN
ID_COUNT = 65_535  # packet identifiers: 1 to 65,535
_ID_COUNT = ID_COUNT
_FLAG_MARK = FLAG_MARK
_FLAG_MARK_MASK = FLAG_MARK_MASK
_FLAG_QOS_MASK = FLAG_QOS_MASK
_CAPACITY_MIN = 16  # a power of two; it doubles


def _ints(size: int) -> array[int]:
    return array("i", bytes(4 * size))


def _longs(size: int) -> array[int]:
    return array("q", bytes(8 * size))


class InflightWindow:
    """The ring of one session, which grows with what is in it: `window_max` messages in flight, WINDOW_MAX at most.

    Messages [`tail`, `head`) are in it, SPAN_MIN or two windows of them at most; `done_count` of them are acknowledged.
    The first `touched_count` of `touched_source` are the sources of what left it in the last call of `acknowledge` or
    `drop`. `changed` are the numbers of those at QoS 2 that went a step on in the last call of `acknowledge`.
    """

    def __init__(self, window_max: int) -> None:
        self.window_max = window_max
        self.head = 0
        self.tail = 0
        self.done_count = 0
        self.touched_count = 0
        self.changed: list[int] = []
        self._touched = _ints(1)
        self._floors = _longs(1)
        self._counts = _ints(1)
        self._touched_at = _longs(1)
        self._turn = 0
        self._mask = _CAPACITY_MIN - 1
        self._offsets = _longs(_CAPACITY_MIN)
        self._sources = _ints(_CAPACITY_MIN)  # ~source where acknowledged
        self._states = _ints(_CAPACITY_MIN)

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
        span = self.head - self.tail
        return min(
            self.window_max - span + self.done_count, min(max(2 * self.window_max, _SPAN_MIN), _WINDOW_MAX) - span
        )

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

    def any_source_of(self, number: int) -> int:
        """Return the source of a message in the ring, acknowledged or not."""
        source = self._sources[number & self._mask]
        return source if source >= 0 else ~source

    def offset_of(self, number: int) -> int:
        """Return the queue offset of a message in the ring."""
        return self._offsets[number & self._mask]

    def state_of(self, number: int) -> int:
        """Return where a message in the ring is; one at QoS 1 is ONCE_SENT, acknowledged or not."""
        return self._states[number & self._mask]

    def has_unacked(self, source: int, offset: int) -> bool:
        """Return whether a message of a source, by its queue offset, is in the ring and not acknowledged."""
        for number in range(self.tail, self.head):
            at = number & self._mask
            if self._sources[at] == source and self._offsets[at] == offset:
                return True
        return False

    def push(self, batch: StoredBatch, source: int, granted_qos: int = 1) -> int:
        """Enter the messages of `batch` that go out at QoS 1 or 2, for which there is room; return how many."""
        before = self.head
        for i in range(batch.count):
            qos = batch.flag[i] & _FLAG_QOS_MASK if batch.flag[i] & _FLAG_MARK_MASK == _FLAG_MARK else 1
            if qos:
                state = _EXACT_SENT if qos == 2 and granted_qos == 2 else _ONCE_SENT  # noqa: PLR2004
                self._enter(source, batch.queue_offset[i], state)
        self._counts[source] += self.head - before
        return self.head - before

    def push_one(self, source: int, offset: int, state: int = ONCE_SENT) -> int:
        """Enter one message, for which there is room; return its number."""
        self._enter(source, offset, state)
        self._counts[source] += 1
        return self.head - 1

    def restore(self, number: int, source: int, offset: int, state: int) -> None:
        """Enter a message that a process before sent and that is not complete; those between are of nobody.

        They come in the order of numbers; the ring has nothing else yet.
        """
        self.skip_to(number)
        self._enter(source, offset, state)
        self._counts[source] += 1

    def skip_to(self, number: int) -> None:
        """Go on with a number, where the next one is lower: those between are of nobody."""
        if self.head == self.tail and self.head < number:
            self.head = self.tail = number
        while self.head < number:
            self._enter(0, 0, _ONCE_SENT)
            self._counts[0] += 1
            self._sources[(self.head - 1) & self._mask] = ~0
            self.done_count += 1

    def lowest_offset(self, source: int, default: int) -> int:
        """Return the lowest offset of `source` in the ring that is not acknowledged, or `default` if that is lower."""
        for number in range(self.tail, self.head):
            slot = number & self._mask
            if self._sources[slot] == source and self._offsets[slot] < default:
                default = self._offsets[slot]
        return default

    def exact_between(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return number and offset of each message at QoS 2 among those numbered [first, end)."""
        return [
            (number, self._offsets[number & self._mask])
            for number in range(first, end)
            if self._states[number & self._mask] == _EXACT_SENT
        ]

    def exact_of(self, source: int) -> list[tuple[int, int]]:
        """Return number and offset of each message at QoS 2 of `source` in the ring, acknowledged or not."""
        found = []
        for number in range(self.tail, self.head):
            slot = number & self._mask
            if self._states[slot] != _ONCE_SENT and max(self._sources[slot], ~self._sources[slot]) == source:
                found.append((number, self._offsets[slot]))
        return found

    def once_of(self, source: int) -> list[int]:
        """Return the offset of each message at QoS 1 of `source` in the ring that is not acknowledged."""
        found = []
        for number in range(self.tail, self.head):
            slot = number & self._mask
            if self._states[slot] == _ONCE_SENT and self._sources[slot] == source:
                found.append(self._offsets[slot])
        return found

    def _enter(self, source: int, offset: int, state: int) -> None:
        if self.head - self.tail > self._mask:
            self._resize(2 * (self._mask + 1))
        slot = self.head & self._mask
        self._offsets[slot] = offset
        self._sources[slot] = source
        self._states[slot] = state
        self.head += 1

    def _resize(self, capacity: int) -> None:
        offsets = _longs(capacity)
        sources = _ints(capacity)
        states = _ints(capacity)
        for number in range(self.tail, self.head):
            offsets[number & (capacity - 1)] = self._offsets[number & self._mask]
            sources[number & (capacity - 1)] = self._sources[number & self._mask]
            states[number & (capacity - 1)] = self._states[number & self._mask]
        self._offsets = offsets
        self._sources = sources
        self._states = states
        self._mask = capacity - 1

    def shrink(self) -> None:
        """Give back the memory that what is in flight does not need."""
        capacity = _CAPACITY_MIN
        while capacity < self.head - self.tail:
            capacity *= 2
        if capacity <= self._mask:
            self._resize(capacity)

    def acknowledge(self, columns: RunColumns) -> int:
        """Take a run of PUBACK, PUBREC or PUBCOMP; return how many were of messages in flight.

        What does not fit is ignored. The codes of PUBRECs become those to answer them with, "not found" where they do
        not fit; -1 where the client failed, which is not answered.
        """
        packet_ids = columns.packet_ids
        acked = 0
        is_recs = columns.ack_type == _PUBREC
        wanted = _ONCE_SENT if columns.ack_type == _PUBACK else _EXACT_SENT if is_recs else _EXACT_RECEIVED
        self.changed = []
        first_id = self.tail % _ID_COUNT + 1
        in_flight = self.head - self.tail
        for i in range(columns.ack_count):
            ahead = packet_ids[i] - first_id
            if ahead < 0:
                ahead += _ID_COUNT
            slot = (self.tail + ahead) & self._mask
            if ahead < in_flight and self._sources[slot] >= 0 and self._states[slot] == wanted:
                if is_recs and columns.codes[i] < _FAILED:
                    self._states[slot] = _EXACT_RECEIVED
                    columns.codes[i] = 0
                else:
                    self._sources[slot] = ~self._sources[slot]
                    self._states[slot] = _EXACT_COMPLETE if wanted else _ONCE_SENT
                    columns.codes[i] = -1
                    self.done_count += 1
                if wanted:
                    self.changed.append(self.tail + ahead)
                acked += 1
            elif is_recs:
                is_known = ahead < in_flight and self._sources[slot] >= 0 and self._states[slot] == _EXACT_RECEIVED
                columns.codes[i] = -1 if columns.codes[i] >= _FAILED else 0 if is_known else _NOT_FOUND
        self._settle()
        return acked

    def release(self, number: int) -> None:
        """Take one message at QoS 2 of the ring, which is not acknowledged, for one that the client has."""
        self._states[number & self._mask] = _EXACT_RECEIVED

    def drop(self, number: int) -> None:
        """Take one message of the ring as acknowledged: it cannot be sent again."""
        slot = number & self._mask
        if self._sources[slot] >= 0:
            self._sources[slot] = ~self._sources[slot]
            self.done_count += 1
        if self._states[slot] != _ONCE_SENT:
            self._states[slot] = _EXACT_COMPLETE
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
            self.done_count -= 1
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

    def unacked_before(self, number: int) -> int:
        """Return how many messages before `number` are not acknowledged."""
        count = 0
        for one in range(self.tail, number):
            if self._sources[one & self._mask] >= 0:
                count += 1
        return count

    def room_at(self, number: int) -> int:
        """Return how many messages from `number` on may be sent again, with those before it in flight.

        A process before may have left more than may be in flight: it forgot acknowledgements that overtook others.
        """
        if self.head - self.tail - self.done_count <= self.window_max:
            return self.window_max  # all of them
        return self.window_max - self.unacked_before(number)

    def run_length(self, number: int, count_max: int) -> int:
        """Return how many messages from `number` on are not acknowledged and follow each other in one queue."""
        count = 1
        source = self._sources[number & self._mask]
        state = self._states[number & self._mask]
        offset = self._offsets[number & self._mask]
        while count < count_max and number + count < self.head:
            slot = (number + count) & self._mask
            is_next = self._sources[slot] == source and self._states[slot] == state
            if not is_next or self._offsets[slot] != offset + count:
                break
            count += 1
        return count


def _copied(old: array[int], new: array[int], size: int) -> array[int]:
    for i in range(size):
        new[i] = old[i]
    return new

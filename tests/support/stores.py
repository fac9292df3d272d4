"""Tables, places and journals in memory, with the methods of the store's, for tests of what is built on them."""

from __future__ import annotations

from pathlib import Path

from core.errors import DiskFullError


class MemoryTable:
    """A table that outlives its users."""

    def __init__(self):
        self.rows = {}

    def get(self, key):
        return self.rows.get(key)

    def put(self, key, value):
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        self.rows[key] = value

    def delete(self, key):
        self.rows.pop(key, None)

    def items(self):
        return iter(self.rows.items())

    def list_keys(self):
        return list(self.rows)

    def __len__(self):
        return len(self.rows)


class Rows(dict):
    """A table that is a dict: a test looks at what is written, of whatever kind."""

    def put(self, key, value):
        self[key] = value

    def delete(self, key):
        self.pop(key, None)


class MemoryPlaces:
    """Places that outlive their users."""

    def __init__(self):
        self.values = {}
        self.owned = set()

    @property
    def used_count(self):
        return len(self.owned)

    def lose_owners(self):
        """Do what closing does: the numbers stay, their owners must be said again."""
        self.owned = set()

    def reserve(self, slots_in_use):
        self.owned = set(slots_in_use)

    def acquire(self, value=0):
        slot = next(slot for slot in range(len(self.owned) + 1) if slot not in self.owned)
        self.owned.add(slot)
        self.values[slot] = value
        return slot

    def release(self, slot):
        self.owned.remove(slot)

    def get(self, slot):
        assert slot in self.owned
        return self.values[slot]

    find = get

    def set(self, slot, value):
        assert slot in self.owned
        self.values[slot] = value

    def fill(self, slot, value):
        self.set(slot, value)


class FullPlaces(MemoryPlaces):
    """Those of a disk that has room for some slots."""

    def __init__(self, room=0):
        super().__init__()
        self.room = room

    def acquire(self, value=0):
        if len(self.owned) >= self.room:
            raise DiskFullError("/data")
        return super().acquire(value)


class MemoryJournal:
    """A journal that outlives its users."""

    def __init__(self):
        self.path = Path("journals/memory")
        self.is_damaged = False
        self.records = []
        self.bytes_used = 0
        self.compactions = 0
        self.compacted = None
        self.synced_count = 0  # records that a power cut leaves

    def sync(self):
        self.synced_count = len(self.records)

    def append_many(self, records, size):
        cut = _cut(records, size)
        self.records += cut
        self.bytes_used += len(cut) * (size + 5)
        if self.is_compacting:
            self.compacted += cut

    def replay(self):
        return iter(list(self.records))

    @property
    def is_compacting(self):
        return self.compacted is not None

    def begin_compaction(self):
        self.compacted = []

    def append_compacted(self, records, size):
        self.compacted += _cut(records, size)

    def finish_compaction(self):
        self.records, self.compacted = self.compacted, None
        self.bytes_used = sum(len(record) + 5 for record in self.records)
        self.compactions += 1

    def reopen(self):
        """Do what a new process finds: a compaction that was not finished never was."""
        self.compacted = None


class FullJournal(MemoryJournal):
    """A journal on a disk that is full while `is_full`."""

    is_full = False
    begins_none = False  # there is no room for a compaction, whatever there is for records

    def append_many(self, records, size):
        if self.is_full:
            raise DiskFullError("full")
        super().append_many(records, size)

    def begin_compaction(self):
        if self.is_full or self.begins_none:
            raise DiskFullError("full")
        super().begin_compaction()


def _cut(records, size):
    assert 1 <= size <= 64
    assert len(records) % size == 0
    return [bytes(records[start : start + size]) for start in range(0, len(records), size)]


class MemoryQueues:
    """Queues of numbered messages, with the reading methods of the message store; a crash or retention can be played.

    A read never crosses a border of `segment_count` messages; damaged messages are left out.
    """

    def __init__(self, segment_count=1_000_000_000):
        self.segment_count = segment_count
        self.names = []
        self.bounds = {}
        self.damaged = set()

    def intern_queue(self, key):
        if key not in self.names:
            self.names.append(key)
            self.bounds[len(self.names) - 1] = [0, 0]
        return self.names.index(key)

    def min_offset(self, queue_ref):
        return self.bounds[queue_ref][0]

    def max_offset(self, queue_ref):
        return self.bounds[queue_ref][1]

    def grow(self, queue_ref, count):
        self.bounds[queue_ref][1] += count

    def retire(self, queue_ref, min_offset):
        bounds = self.bounds[queue_ref]
        bounds[0] = min(max(bounds[0], min_offset), bounds[1])

    def read(self, queue_ref, offset, into, count_max, bytes_max):
        low, high = self.bounds[queue_ref]
        offset = max(offset, low)
        end = min(high, (offset // self.segment_count + 1) * self.segment_count)
        into.count = 0
        while offset < end and into.count < min(count_max, into.capacity) and into.count * 10 < bytes_max:
            self._put(into, offset)
            offset += 1
        into.next_offset = offset
        return into.count

    def read_offsets(self, queue_ref, offsets, count, into):
        low, high = self.bounds[queue_ref]
        into.count = used = 0
        while used < count and offsets[used] // self.segment_count == offsets[0] // self.segment_count:
            if low <= offsets[used] < high and into.count < into.capacity:
                self._put(into, offsets[used])
            used += 1
        return used

    def _put(self, into, offset):
        if offset not in self.damaged:
            i = into.count
            into.queue_offset[i] = offset
            into.physical_offset[i] = offset * 10
            into.record_start[i], into.record_end[i] = offset * 10, offset * 10 + 10
            into.count = i + 1

"""Tables, places and journals in memory, with the methods of the store's, for tests of what is built on them."""

from __future__ import annotations


class MemoryTable:
    """A table that outlives whoever uses it."""

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

    def __len__(self):
        return len(self.rows)


class MemoryPlaces:
    """Places that outlive whoever uses them."""

    def __init__(self):
        self.values = {}
        self.owned = set()

    @property
    def used_count(self):
        return len(self.owned)

    def lose_owners(self):
        """Do what closing does: the numbers stay, who has them must be said again."""
        self.owned = set()

    def reserve(self, slots_in_use):
        self.owned = set(slots_in_use)

    def acquire(self):
        slot = next(slot for slot in range(len(self.owned) + 1) if slot not in self.owned)
        self.owned.add(slot)
        return slot

    def release(self, slot):
        self.owned.remove(slot)

    def get(self, slot):
        assert slot in self.owned
        return self.values[slot]

    def set(self, slot, value):
        assert slot in self.owned
        self.values[slot] = value


class MemoryJournal:
    """A journal that outlives whoever uses it."""

    def __init__(self):
        self.records = []
        self.compactions = 0

    @property
    def bytes_used(self):
        return sum(len(record) + 5 for record in self.records)

    def append(self, record):
        assert 1 <= len(record) <= 64
        self.records.append(bytes(record))

    def append_many(self, records, size):
        assert len(records) % size == 0
        for start in range(0, len(records), size):
            self.append(records[start : start + size])

    def replay(self):
        return iter(list(self.records))

    def compact(self, records):
        self.records = [bytes(record) for record in records]
        self.compactions += 1

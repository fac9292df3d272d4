"""The index of the newest segment, in memory: 4 bytes an entry, 17 bytes a queue.

Each queue has a row of 16 bytes: the queue offset of its first entry here, how many entries, and where the next one
goes. Entries lie in chunks of one arena, each twice as large as the one before (2, 4, 8, ...) and led by the place of
that one. So the chunk that holds an entry follows from the entry's number, the newest is reached at once, the oldest in
log2 steps, and a queue with one entry costs 12 bytes more.
"""

from __future__ import annotations

from array import array

from core.store.arena import Arena

HOLE = -1  # the position of an entry whose record is lost: its queue offset stays taken
GONE = -2  # one whose record was punched out of its segment, because nobody needed it
HOLES_MAX = 1 << 26  # entries that one gap may cost: 256 MiB of memory; a larger one is no gap
_HOLES_MAX = HOLES_MAX

_ROW_BYTES = 16  # of a queue; its flag is the seventeenth byte
_WATCHED = 1
_GROWN = 2  # in the list of grown queues
_ENTRIES_BYTES = 65_536  # to begin with: 16,384 entries; it grows
_WARM_QUEUES = 32  # loaded together before they are added to: 60 ns a queue where a million are cold, 130 without
_WARM_FROM_QUEUES = 8_192  # fewer stay in the caches by themselves
_PLACE_MAX = 0x7FFFFFFF  # places are signed numbers of 32 bits
_PAGE_ENTRIES = 1_024  # of 4 bytes: a page of 4,096
_HALF_PAGE = 512  # so many entries before a page is needed it is noted for `touch_ahead`
_AHEAD_MAX = 16  # pages noted at a time; those of a publisher to very many queues are found when they are needed


class HeadIndex:
    """Entries of the newest segment and the next queue offset of every queue.

    Queues are refs below `queue_count`. Positions are byte offsets inside the segment, below 2**31, HOLE or GONE.
    """

    def __init__(self, queue_count: int = 0) -> None:
        self.queue_count = 0
        self.entry_count = 0
        self.watched_count = 0
        self.grown_count = 0
        self.hole = HOLE  # what `set_next_offset` puts into places that nobody filled
        self.export_ref = 0
        self.export_number = 0
        self.warmed = 0  # sum of what `warm` read, so that the compiler keeps the reads
        self.ahead = array("q", bytes(8 * _AHEAD_MAX))  # places in pages that are needed soon
        self.nothing = 0  # what `touch_ahead` adds to them
        self.row_memory = Arena(_ROW_BYTES)
        self.flag_memory = Arena(1)
        self.grown = array("i", bytes(4 * 64))
        self.map_rows()
        self.start_entries()
        self.ensure(queue_count)

    def map_rows(self) -> None:
        """Take fresh views of the rows and flags."""
        self.bases = self.row_memory.longs()  # at 2 * ref: queue offset of the first entry here
        self.cells = self.row_memory.ints()  # at 4 * ref + 2: entry count, place of the next entry
        self.flags = self.flag_memory.octets()

    def start_entries(self) -> None:
        """Begin an empty arena of entries."""
        self.entry_memory = Arena(_ENTRIES_BYTES)
        self.entries = self.entry_memory.ints()
        self.top = 1  # place of the next chunk; 0 means none
        self.ahead_count = 0
        self.entry_count = 0

    def ensure(self, queue_count: int) -> None:
        """Make a row for each ref below `queue_count`; new ones start at queue offset 0."""
        if queue_count <= self.queue_count:
            return
        if queue_count * _ROW_BYTES > self.row_memory.size or queue_count > self.flag_memory.size:
            empty = Arena(1)
            self.bases = empty.longs()
            self.cells = empty.ints()
            self.flags = empty.octets()
            if queue_count * _ROW_BYTES > self.row_memory.size:
                self.row_memory.grow(queue_count * _ROW_BYTES)
            if queue_count > self.flag_memory.size:
                self.flag_memory.grow(queue_count)
            self.map_rows()
        self.queue_count = queue_count

    def add_chunk(self, tail: int, count: int) -> int:
        """Begin the chunk after the full one that ends at `tail`; return the place of its first entry."""
        capacity = count + 2
        chunk = self.top
        end = chunk + capacity + 1
        if end > _PLACE_MAX:
            raise MemoryError("the head index is full: seal it")
        if 4 * (end + 1) > self.entry_memory.size:  # one more, so that the place after a full chunk can be read too
            self.entries = Arena(1).ints()
            try:
                self.entry_memory.grow(4 * (end + 1))
            finally:
                self.entries = self.entry_memory.ints()
        self.entries[chunk] = tail - capacity // 2 - 1 if count else 0
        self.top = end
        return chunk + 1

    def mark_grown(self, ref: int) -> None:
        """Note that a watched queue grew."""
        if self.grown_count == len(self.grown):
            wider = array("i", bytes(8 * self.grown_count))
            for index in range(self.grown_count):
                wider[index] = self.grown[index]
            self.grown = wider
        self.grown[self.grown_count] = ref
        self.grown_count += 1
        self.flags[ref] = _WATCHED | _GROWN

    def add(self, ref: int, position: int) -> int:
        """Add one entry to a queue and return its queue offset."""
        if ref < 0 or ref >= self.queue_count:
            raise IndexError("no such queue")
        cell = 4 * ref + 2
        count = self.cells[cell]
        tail = self.cells[cell + 1]
        if (count + 2) & (count + 1) == 0:
            tail = self.add_chunk(tail, count)
        self.entries[tail] = position
        if tail & (_PAGE_ENTRIES - 1) == _HALF_PAGE and self.ahead_count < _AHEAD_MAX:
            self.ahead[self.ahead_count] = tail + _HALF_PAGE
            self.ahead_count += 1
        self.cells[cell] = count + 1
        self.cells[cell + 1] = tail + 1
        self.entry_count += 1
        if self.watched_count > 0 and self.flags[ref] == _WATCHED:
            self.mark_grown(ref)
        return self.bases[2 * ref] + count

    def add_set(self, refs: array[int], count: int, position: int) -> None:
        """Add an entry for the same record to each of the first `count` queues of `refs`."""
        start = 0
        while start < count:
            end = min(start + _WARM_QUEUES, count)
            if self.queue_count >= _WARM_FROM_QUEUES:
                self.warm(refs, start, end)
            for index in range(start, end):
                self.add(refs[index], position)
            start = end

    def touch_ahead(self) -> None:
        """Have the pages in memory that queues will soon go on to, so that no `add` has to wait for the kernel."""
        while self.ahead_count > 0:
            self.ahead_count -= 1
            place = self.ahead[self.ahead_count]
            if place < self.entry_memory.size // 4:
                self.entries[place] += self.nothing

    def warm(self, refs: array[int], start: int, end: int) -> None:
        """Bring what an `add` to the queues in [start, end) of `refs` will touch into the processor's caches.

        Loads that wait for nothing overlap, those inside `add` hardly do.
        """
        total = 0
        for index in range(start, end):
            if 0 <= refs[index] < self.queue_count:
                total ^= self.cells[4 * refs[index] + 3]
        for index in range(start, end):
            if 0 <= refs[index] < self.queue_count:
                total ^= self.entries[self.cells[4 * refs[index] + 3]]
        self.warmed = total

    def next_offset(self, ref: int) -> int:
        """Return the queue offset that the next entry will get."""
        if ref < 0 or ref >= self.queue_count:
            raise IndexError("no such queue")
        return self.bases[2 * ref] + self.cells[4 * ref + 2]

    def first_offset(self, ref: int) -> int:
        """Return the queue offset of the first entry here; the next offset where there is none."""
        if ref < 0 or ref >= self.queue_count:
            raise IndexError("no such queue")
        return self.bases[2 * ref]

    def set_next_offset(self, ref: int, offset: int) -> None:
        """Move a queue's next offset on; where entries are held, holes take the offsets between.

        Raises:
            ValueError: The offset lies before the next one, or impossibly far after it.
        """
        gap = offset - self.next_offset(ref)
        if self.cells[4 * ref + 2] == 0 and offset >= 0:
            self.bases[2 * ref] = offset
            return
        if gap < 0 or gap > _HOLES_MAX:
            raise ValueError("a queue's next offset only moves on, and not far")
        while gap > 0:
            self.add(ref, self.hole)
            gap -= 1

    def lookup(self, ref: int, offset: int, count_max: int, out_positions: array[int]) -> int:
        """Write the positions of up to `count_max` entries from `offset` on; return how many, 0 where none is here."""
        if ref < 0 or ref >= self.queue_count:
            raise IndexError("no such queue")
        index = offset - self.bases[2 * ref]
        count = self.cells[4 * ref + 2]
        if index < 0 or index >= count:
            return 0
        size = min(count - index, count_max, len(out_positions))
        return self.copy_entries(ref, index, size, out_positions, 0)

    def copy_entries(self, ref: int, index: int, size: int, out: array[int], at: int) -> int:
        """Copy the entries [index, index + size) of a queue to `out` from `at`, the newest chunk first; return size."""
        count = self.cells[4 * ref + 2]
        capacity = 2
        while 2 * capacity <= count + 1:
            capacity *= 2
        first = capacity - 2  # number of the chunk's first entry
        chunk = self.cells[4 * ref + 3] - 1 - (count - first)
        end = index + size
        while end > index:
            low = max(first, index)
            place = chunk + 1 - first
            for entry in range(low, end):
                out[at + entry - index] = self.entries[place + entry]
            end = min(end, low)
            chunk = self.entries[chunk]
            capacity //= 2
            first = capacity - 2
        return size

    def watch(self, ref: int, on: bool) -> None:  # noqa: FBT001  # the store's interface
        """Report growth of a queue in `take_grown`, or no longer."""
        if ref < 0 or ref >= self.queue_count:
            raise IndexError("no such queue")
        flags = self.flags[ref]
        if on and not flags & _WATCHED:
            self.flags[ref] = flags | _WATCHED
            self.watched_count += 1
        elif not on and flags & _WATCHED:
            self.flags[ref] = flags & _GROWN
            self.watched_count -= 1

    def take_grown(self, into: list[int]) -> int:
        """Append each watched queue that grew since the last call, once; return how many."""
        taken = 0
        for index in range(self.grown_count):
            ref = self.grown[index]
            flags = self.flags[ref] & _WATCHED
            self.flags[ref] = flags
            if flags:
                into.append(ref)
                taken += 1
        self.grown_count = 0
        return taken

    def detach(self) -> HeadIndex:
        """Return an index that holds the entries from now on; this one goes on without any, for the next segment.

        Next offsets and watches stay here. What is returned must not be added to.
        """
        frozen = HeadIndex()
        frozen.queue_count = self.queue_count
        frozen.row_memory = self.row_memory
        frozen.flag_memory = Arena(self.queue_count)
        frozen.map_rows()
        frozen.entry_memory = self.entry_memory
        frozen.entries = self.entries
        frozen.entry_count = self.entry_count
        self.row_memory = Arena(self.queue_count * _ROW_BYTES)
        self.map_rows()
        for ref in range(self.queue_count):
            self.bases[2 * ref] = frozen.bases[2 * ref] + frozen.cells[4 * ref + 2]
        self.start_entries()
        return frozen

    def count_queues(self) -> int:
        """Return how many queues have entries here, and begin the exports anew."""
        self.export_ref = 0
        self.export_number = 0
        found = 0
        for ref in range(self.queue_count):
            found += self.cells[4 * ref + 2] > 0
        return found

    def export_queues(self, start: int, end: int, place: int, out: array[int]) -> int:
        """Describe the queues in [start, end) that have entries, by three numbers each; return how many they are.

        The numbers are ref and entry count (shifted by 32), first queue offset, and the place of the first entry where
        all queues' entries lie end to end in the order of refs and those of `start` begin at `place`.
        """
        filled = 0
        for ref in range(start, end):
            count = self.cells[4 * ref + 2]
            if count > 0:
                out[filled] = count << 32 | ref
                out[filled + 1] = self.bases[2 * ref]
                out[filled + 2] = place
                place += count
                filled += 3
        return filled // 3

    def export_entries(self, out: array[int]) -> int:
        """Fill `out` with the entries of all queues in the order of refs, from where the last call ended.

        `count_queues` begins anew. Returns how many; 0 after the last.
        """
        filled = 0
        room = len(out)
        while room > 0 and self.export_ref < self.queue_count:
            size = min(self.cells[4 * self.export_ref + 2] - self.export_number, room)
            if size > 0:
                self.copy_entries(self.export_ref, self.export_number, size, out, filled)
                self.export_number += size
                filled += size
                room -= size
            if self.export_number == self.cells[4 * self.export_ref + 2]:
                self.export_ref += 1
                self.export_number = 0
        return filled

    def export_next_offsets(self, start: int, out: array[int]) -> int:
        """Fill `out` with the next offsets of the queues from `start` on; return how many there were."""
        size = max(min(len(out), self.queue_count - start), 0)
        for index in range(size):
            ref = start + index
            out[index] = self.bases[2 * ref] + self.cells[4 * ref + 2]
        return size

    def export_first_offsets(self, start: int, out: array[int]) -> int:
        """Fill `out` with what `first_offset` says of the queues from `start` on; return how many there were."""
        size = max(min(len(out), self.queue_count - start), 0)
        for index in range(size):
            out[index] = self.bases[2 * (start + index)]
        return size

    def put_first_offsets(self, start: int, count: int, out: array[int]) -> None:
        """Write the first offsets of those of `count` queues from `start` on that have any, of `start` to `out[0]`."""
        for index in range(max(min(count, self.queue_count - start), 0)):
            if self.cells[4 * (start + index) + 2] > 0:
                out[index] = self.bases[2 * (start + index)]

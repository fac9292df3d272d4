"""The log -> the indexes, in log order: what recovery does with each record that it finds sound.

A record says itself where it is in its queues: its own queue offset, `INNER_MULTI_QUEUE_OFFSET` for the light queues,
the dispatch set's record for an interned set. So any segment can be indexed by itself. Where records were punched out,
the gap says where the queues of the sets stand after it.

Where a record is lost whose queues cannot be told, the offsets of a set's messages cannot be counted: they are in doubt
until something names an offset of the queue, and what is in doubt is lost too, not served under another's number.
"""

from __future__ import annotations

from array import array

from core import octets
from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.properties import CRC, DISPATCH_SET, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from core.store.dispatch_set import LMQ_PREFIX, decode_set
from core.store.gap import SetUse, read_uses
from core.store.head_index import GONE, HOLE, HeadIndex
from core.store.layout import CRC_PROPERTY_BYTES, SYS_NOT_DISPATCHED
from core.store.queue_names import QueueNames
from core.store.record import fill_columns, find_property, is_gap, is_intact, is_set, read_decimal, record_size

_HOLE = HOLE
_NOT_DISPATCHED = SYS_NOT_DISPATCHED
_CRC_BYTES = CRC_PROPERTY_BYTES
_CRC_NAME = CRC
_NAMES = INNER_MULTI_DISPATCH
_OFFSETS = INNER_MULTI_QUEUE_OFFSET
_SET = DISPATCH_SET
LISTS_CACHED = 100_000  # of a few names each some 30 MB, while a start reads the log
LOST_BYTES_MIN = 128  # of a record that is in a light queue
_LOST_BYTES_MIN = LOST_BYTES_MIN
LOST_MAX = 65_536  # records that a damaged stretch is taken for: each takes a place in queues that are in doubt
_LOST_MAX = LOST_MAX


class Dispatcher:
    """Indexes the records of one segment into `head`.

    `records` counts what was indexed, `lost` what could not be: damaged records, and entries of sets that are damaged.
    """

    def __init__(self, names: QueueNames, head: HeadIndex) -> None:
        self.names = names
        self.head = head
        self.columns = StoredBatch(1)
        self.topics: dict[bytes, int] = {}
        self.last_topic = b""  # the topic, queue and ref of the record before
        self.last_queue_id = 0
        self.last_ref = -1
        self.lists: dict[bytes, array[int]] = {}  # names joined by commas -> refs
        self.sets: dict[int, array[int]] = {}  # physical offset of a set's record -> refs
        self.set_offsets: dict[int, array[int]] = {}  # -> next offsets of these queues when it was written
        self.is_punched = False  # a gap came: what records since then do not say is gone, and sets go by `uses`
        self.uses: dict[int, SetUse] = {}  # of the sets that records use up to the next gap, by physical offset
        self.doubts = 0  # so many records at most went to queues that nobody knows
        self.sure: set[int] = set()  # refs whose offset something named since the last of them
        self.unsure: set[int] = set()  # refs with entries that are in doubt
        self.records = 0
        self.lost = 0
        self.unplaced: dict[int, list[int]] = {}  # sets that nobody knows -> their messages: count, first and last
        self.store_ms = 0  # of the last record

    def run(self, buf: bytes | bytearray | memoryview, base: int, pos: int) -> int:
        """Index the sound records of the segment `buf` from `pos` on; return where the first other thing stands."""
        size = record_size(buf, pos)
        while size > 0 and fill_columns(self.columns, 0, buf, pos, base) and is_intact(self.columns, 0, buf):
            self._dispatch(buf, base, pos)
            pos += size
            size = record_size(buf, pos)
        return pos

    def lose(self, buf: bytes | bytearray | memoryview, base: int, pos: int, end: int) -> None:
        """Keep the places of a damaged record in [pos, end) where it can be told which they were."""
        self.lost += 1
        columns = self.columns
        is_one = fill_columns(columns, 0, buf, pos, base) and columns.record_end[0] == end
        if not is_one or not self._lose_places(buf, pos):
            self._doubt(min((end - pos) // _LOST_BYTES_MIN + 1, _LOST_MAX))

    def settle(self) -> None:
        """End a segment: what is still in doubt leaves as many places as records may have taken."""
        for ref in self.unsure - self.sure:
            self._skip_to(ref, self.head.next_offset(ref) + self.doubts)

    def offsets_of(self, names: list[bytes]) -> array[int] | None:
        """Return where queues stand now, 0 for those of which nothing came; None where one is in doubt."""
        offsets = array("q", bytes(8 * len(names)))
        for k in range(len(names)):
            ref = self.names.find(names[k])
            if 0 <= ref < self.head.queue_count:
                if self.is_punched or (self.doubts and ref not in self.sure):
                    return None
                offsets[k] = self.head.next_offset(ref)
        return offsets

    def _doubt(self, records: int) -> None:
        self.doubts += records
        self.sure.clear()
        self.uses = {}

    def _lose_places(self, buf: bytes | bytearray | memoryview, pos: int) -> bool:
        """Put holes where a damaged record was; False where what it says of its queues cannot be believed.

        Its properties must be whole by the look of them, and agree with what came before.
        """
        columns = self.columns
        start = columns.properties_start[0]
        end = columns.properties_end[0]
        crc_at = max(end - _CRC_BYTES, start)
        if (
            columns.sys_flag[0] & _NOT_DISPATCHED
            or is_gap(columns, 0, buf)
            or octets.find_byte(buf, 0, start, end) >= 0
            or not octets.starts_with(buf, crc_at, _CRC_NAME)
        ):
            return False
        at = find_property(buf, start, end, _NAMES)
        if at >= 0:
            return self._lose_inline(buf, at, start, end)
        at = find_property(buf, start, end, _SET)
        if at >= 0:
            if read_decimal(buf, at, end) not in self.sets:
                return False
            self._dispatch_interned(buf, at, end, pos, _HOLE)
            return True
        body_crc = octets.crc32(buf, columns.body_start[0], columns.body_end[0])
        return body_crc != octets.read_u32(buf, pos + 8)  # so it is the body that is damaged

    def _lose_inline(self, buf: bytes | bytearray | memoryview, at: int, start: int, properties_end: int) -> bool:
        """Put holes where a damaged record's list says, if each is the next of a queue that is known."""
        names = _read_text(buf, at, properties_end).split(b",")
        at = find_property(buf, start, properties_end, _OFFSETS)
        offsets = _read_text(buf, at, properties_end).split(b",") if at >= 0 else []
        refs: list[int] = []
        for k in range(len(names)):
            ref = self.names.find(names[k])
            if k >= len(offsets) or not offsets[k].isdigit() or ref < 0 or ref >= self.head.queue_count:
                return False
            offset = int(offsets[k])
            if offset != self.head.next_offset(ref) or offset == self.head.first_offset(ref):
                return False
            refs.append(ref)
        for ref in set(refs):
            self.head.add(ref, _HOLE)
        return True

    def _dispatch(self, buf: bytes | bytearray | memoryview, base: int, pos: int) -> None:
        columns = self.columns
        self.store_ms = max(self.store_ms, columns.store_ms[0])
        if is_gap(columns, 0, buf):
            self._pass_gap(buf, base)
            return
        self.records += 1
        if columns.sys_flag[0] & _NOT_DISPATCHED:
            return
        if is_set(columns, 0, buf):
            self._learn_set(buf, base + pos)
            return
        ref = self._topic_ref(buf, octets.read_i32(buf, pos + 12))
        self._place(ref, octets.read_i64(buf, pos + 20), pos)
        start = columns.properties_start[0]
        end = columns.properties_end[0]
        at = find_property(buf, start, end, _NAMES)
        if at >= 0:
            self._dispatch_inline(buf, at, start, end, pos)
            return
        at = find_property(buf, start, end, _SET)
        if at >= 0:
            self._dispatch_interned(buf, at, end, pos, pos)

    def _topic_ref(self, buf: bytes | bytearray | memoryview, queue_id: int) -> int:
        """Return the ref of the record's own topic, which ends two bytes before the properties, and of its queue."""
        start = self.columns.body_end[0] + 1
        end = self.columns.properties_start[0] - 2
        if octets.read_u32(buf, self.columns.record_start[0] + 4) & 0xF == 0xB:
            start += 1  # the second version's length has two bytes
        if (
            self.last_ref >= 0
            and queue_id == self.last_queue_id
            and end - start == len(self.last_topic)
            and octets.starts_with(buf, start, self.last_topic)
        ):
            return self.last_ref
        topic = octets.read_bytes(buf, start, end)
        key = b"%b/%d" % (topic, queue_id)
        ref = self.topics.get(key, -1)
        if ref < 0:
            ref = self.topics[key] = self._intern(key)
        self.last_topic = topic
        self.last_queue_id = queue_id
        self.last_ref = ref
        return ref

    def _intern(self, key: bytes) -> int:
        ref = self.names.intern(key)
        self.head.ensure(self.names.count)
        return ref

    def _place(self, ref: int, offset: int, pos: int) -> None:
        """Add the entry `offset` of a queue; holes take the places of those that are missing before it."""
        head = self.head
        next_offset = head.next_offset(ref)
        if offset != next_offset:
            if offset < next_offset and head.first_offset(ref) != next_offset:
                return  # the same queue twice in one list
            try:
                head.set_next_offset(ref, offset)
            except ValueError:
                self.lost += 1
                return
        head.add(ref, pos)
        if self.doubts:
            self.sure.add(ref)

    def _dispatch_inline(
        self, buf: bytes | bytearray | memoryview, at: int, start: int, properties_end: int, pos: int
    ) -> None:
        """Add the entries of a list that stands in the record; one without an offset for each name gives none."""
        end = octets.find_byte(buf, 2, at, properties_end)
        text = octets.read_bytes(buf, at, end if end >= 0 else properties_end)
        refs = self.lists.get(text)
        if refs is None:
            refs = self._learn_list(text)
        at = find_property(buf, start, properties_end, _OFFSETS)
        if at < 0:
            return
        end = octets.find_byte(buf, 2, at, properties_end)
        end = end if end >= 0 else properties_end
        count = len(refs)
        if count != _count_fields(buf, at, end):
            return
        for k in range(count):
            comma = octets.find_byte(buf, 44, at, end)
            comma = comma if comma >= 0 else end
            value = read_decimal(buf, at, comma)
            if value >= 0 and refs[k] >= 0:
                self._place(refs[k], value, pos)
            at = comma + 1

    def _learn_list(self, text: bytes) -> array[int]:
        names = text.split(b",")
        refs = array("i", [self._intern(name) if name.startswith(LMQ_PREFIX) else -1 for name in names])
        if len(self.lists) >= LISTS_CACHED:
            self.lists.clear()
        self.lists[text] = refs
        return refs

    def _learn_set(self, buf: bytes | bytearray | memoryview, physical_offset: int) -> None:
        """Take in a set's record: its refs, and where its queues stand as of here."""
        columns = self.columns
        try:
            names, offsets = decode_set(octets.read_bytes(buf, columns.body_start[0], columns.body_end[0]))
        except CorruptRecordError:
            self.lost += 1
            return
        self.take_set(physical_offset, names, offsets)

    def take_set(self, physical_offset: int, names: list[bytes], offsets: array[int]) -> None:
        """Take in a set, which was written at `physical_offset`, where its queues stood at `offsets`."""
        refs = array("i", [self._intern(name) for name in names])
        self.sets[physical_offset] = refs
        self.set_offsets[physical_offset] = offsets
        if self.is_punched:
            return  # `uses` knows better: other records of these queues are gone
        if self.doubts:
            self.sure.update(refs)
        for k in range(len(refs)):
            ref = refs[k]
            if self.head.next_offset(ref) < offsets[k] or self.head.first_offset(ref) == self.head.next_offset(ref):
                self.head.set_next_offset(ref, offsets[k])

    def _pass_gap(self, buf: bytes | bytearray | memoryview, base: int) -> None:
        """Go on after a gap."""
        self.is_punched = True
        self.head.hole = GONE
        start = self.columns.body_start[0]
        data = octets.read_bytes(buf, start + 4, start + 4 + octets.read_u32(buf, start))
        self.uses = read_uses(data, base, self.columns.record_end[0])

    def _dispatch_interned(
        self, buf: bytes | bytearray | memoryview, at: int, properties_end: int, pos: int, entry: int
    ) -> None:
        """Add `entry` to the queues of the set that the record at `pos` names."""
        place = read_decimal(buf, at, properties_end)
        refs = self.sets.get(place)
        if refs is None:
            self.lost += 1
            self._note_unplaced(place, pos)
            self._doubt(1)
        elif self.is_punched:
            self._dispatch_use(place, refs, pos, entry)
        elif self.doubts and not self.sure.issuperset(refs):
            self._dispatch_doubtful(refs, entry)
        else:
            self.head.add_set(refs, len(refs), entry)

    def _note_unplaced(self, place: int, pos: int) -> None:
        noted = self.unplaced.setdefault(place, [0, pos, pos])
        noted[0] += 1
        noted[2] = pos

    def _dispatch_doubtful(self, refs: array[int], entry: int) -> None:
        """Add `entry` to those queues of a set whose offset is sure, and a hole to the others."""
        self.lost += 1
        for ref in refs:
            if ref in self.sure:
                self.head.add(ref, entry)
            else:
                self.unsure.add(ref)
                self.head.add(ref, _HOLE)

    def _dispatch_use(self, place: int, refs: array[int], pos: int, entry: int) -> None:
        """Add `entry` to those queues of a set that have something from `pos` on, or had before, since the last gap."""
        use = self.uses.get(place)
        if use is None:
            self.lost += 1
            return
        if not use.is_bound:
            use.bind(self.set_offsets[place])
        head = self.head
        starts = use.starts
        offsets = use.offsets
        for k in range(len(refs)):
            if starts[k] <= pos:
                ref = refs[k]
                if head.next_offset(ref) < offsets[k]:
                    self._skip_to(ref, offsets[k])
                head.add(ref, entry)

    def _skip_to(self, ref: int, offset: int) -> None:
        try:
            self.head.set_next_offset(ref, offset)
        except ValueError:
            self.lost += 1


def _read_text(buf: bytes | bytearray | memoryview, at: int, end: int) -> bytes:
    """Return the property's value at `at`."""
    close = octets.find_byte(buf, 2, at, end)
    return bytes(octets.read_bytes(buf, at, close if close >= 0 else end))


def _count_fields(buf: bytes | bytearray | memoryview, at: int, end: int) -> int:
    """Return how many fields commas make of [at, end); empty ones at the end do not count, as in Java."""
    while end > at and buf[end - 1] == 44:
        end -= 1
    if end == at:
        return 0
    count = 1
    while at < end:
        if buf[at] == 44:
            count += 1
        at += 1
    return count

"""The append-only log: one loop writes the records of a batch in place and indexes them, all or none of each.

One writer. A record is written where it stays, into the mapped segment; nothing is indexed before it is complete.
"""

from __future__ import annotations

from collections.abc import Callable

from core import octets
from core.errors import MessageTooLargeError
from core.message import DispatchSet, PublishBatch, Route
from core.reserved import DISPATCH_SET_TOPIC
from core.store.dispatch_set import SET_HEADER_BYTES, SET_VERSION
from core.store.head_index import HeadIndex
from core.store.layout import (
    BLANK_BYTES,
    CRC_PROPERTY_BYTES,
    DEFAULT_STORE_HOST,
    MAGIC_BLANK,
    PAGE_BYTES,
    SYS_BORN_V6,
    SYS_NOT_DISPATCHED,
    SYS_STORE_V6,
    UNIT_BEGINS,
    UNIT_GOES_ON,
    UNIT_SHIFT,
)
from core.store.record_bounds import HEAD_BYTES, SET_NAME, bound_batch, bound_record, count_entries
from core.store.record_write import end_part, host_flags, magic_of, write_crc, write_fixed, write_topic
from core.store.segments import Segments

ENTRIES_MAX = 16 << 20  # entries of one segment: 64 MiB of memory; a segment with so many is closed early
SET_AGAIN_PARTS = 16  # after such a part of a segment a set in use is written again: that ends what damage costs
SET_SHARE = 64  # ... but no sooner than after so many times its own size
NEVER = 1 << 62  # a physical offset that no log comes to
TOUCHED_PAGES_MAX = 16  # made ready at once: some 30 us, and at most so many pages of zeros in a sync

_CRC_BYTES = CRC_PROPERTY_BYTES
_BLANK_BYTES = BLANK_BYTES
_SET_NAME = SET_NAME
_SET_TOPIC = DISPATCH_SET_TOPIC
_HEAD_BYTES = HEAD_BYTES
_HOST_FLAGS = SYS_BORN_V6 | SYS_STORE_V6
_NOT_DISPATCHED = SYS_NOT_DISPATCHED
_SET_HEADER_BYTES = SET_HEADER_BYTES
_VARINT_MASK = 0x7F
_SET_SHARE = SET_SHARE
_PAGE_BYTES = PAGE_BYTES
_TOUCHED_PAGES_MAX = TOUCHED_PAGES_MAX
_UNIT_BEGINS = UNIT_BEGINS
_UNIT_GOES_ON = UNIT_GOES_ON
_UNIT_SHIFT = UNIT_SHIFT


class CommitLog:
    """The end of the log, where records are added.

    Args:
        segments: The files.
        head: The index of the newest segment.
        store_host: Address and port stamped on records, 8 or 20 bytes.
        body_bytes_max: Longer bodies are refused.
        on_roll: Called with the base of a segment that is full, before anything goes to the next one.
    """

    def __init__(
        self,
        segments: Segments,
        head: HeadIndex,
        *,
        store_host: bytes = DEFAULT_STORE_HOST,
        body_bytes_max: int,
        on_roll: Callable[[int], None],
    ) -> None:
        self.segments = segments
        self.head = head
        self.on_roll = on_roll
        self.store_host = store_host
        self.body_bytes_max = body_bytes_max
        self.entries_max = ENTRIES_MAX
        self.set_again_bytes = segments.segment_bytes // SET_AGAIN_PARTS
        self.view: memoryview | bytearray = bytearray()
        self.base = 0
        self.position = 0  # of the next record in the newest segment
        self.size = 0  # of the newest segment; 0 while there is none
        self.touched_end = 0  # of the pages that `touch_ahead` had ready
        self.touched_pages = 0  # how many the last time; 0 until messages have come to a page since the last sync
        self.is_synced = False  # after the last `touch_ahead`
        self.prepare_at = 0  # physical offset from which on a step of preparation should not be waited for
        self.store_ms = 0
        self.message_count = 0  # appended since the start, without the records of interned sets
        self.dispatch_count = 0  # entries that these made in light queues
        self.part = 0  # of a unit, that the next record is
        self.part_base, self.part_at = 0, 0  # where the last one is: its segment, its place there

    def go_on_at(self, position: int, store_ms: int) -> None:
        """Take the newest segment as it is; the next record goes to `position` in it, no earlier than `store_ms`."""
        newest = self.segments.newest
        assert newest is not None
        self.view = newest.view
        self.base = self.segments.newest_base
        self.size = newest.size
        self.touched_end = 0
        self.position = position
        self.store_ms = max(store_ms, self.store_ms)

    def note_time(self, now_ms: int) -> None:
        """Let records from now on be stored no earlier than `now_ms`."""
        self.store_ms = max(self.store_ms, now_ms)

    def written_until(self) -> int:
        """Return the physical offset after the last record."""
        return self.base + self.position

    def touch_ahead(self) -> bool:
        """Have what the next message is written to ready, so that it does not have to wait for that.

        A sync writes what was made ready, which has to be made ready again.

        Returns:
            Whether `touch_pages` is wanted: messages come one by one, several pages of them between two
            syncs, and this page is the last but one that is ready; or more are to be prepared.
        """
        self.head.touch_ahead()
        if self.is_synced:
            self.is_synced = False
            if self.position < self.size:
                octets.write_u8(self.view, self.position, 0)  # as it is: nothing is written there yet
            if self.touched_pages > 1:
                self.touched_end = 0
            self.touched_pages = 0
        is_end_near = self.base + self.position > self.prepare_at
        at = self.position - self.position % _PAGE_BYTES + _PAGE_BYTES
        if at < self.touched_end:
            is_last = at + _PAGE_BYTES == self.touched_end < self.size
            return (is_last and self.touched_pages > 0) or is_end_near
        if at < self.size:
            octets.write_u8(self.view, at, 0)
        self.touched_pages = 1 if at == self.touched_end else 0
        self.touched_end = at + _PAGE_BYTES
        return is_end_near

    def touch_pages(self) -> None:
        """Have several pages ready, twice as many each time.

        The first write to a page enters the kernel for longer than everything else that a lone message needs.
        """
        at = self.touched_end
        if at <= self.position or self.touched_pages == 0:  # more came than one by one, or a sync
            return
        self.touched_pages = min(2 * self.touched_pages, _TOUCHED_PAGES_MAX)
        self.touched_end = min(at + self.touched_pages * _PAGE_BYTES, self.size)
        while at < self.touched_end:
            octets.write_u8(self.view, at, 0)
            at += _PAGE_BYTES

    def note_sync(self) -> None:
        """All that was written before was synced: the kernel has to be entered again for the pages that it lies in."""
        self.is_synced = True

    def keep_together(self, on: bool) -> None:  # noqa: FBT001  # a switch
        """Begin a unit, all records until it is switched off: a crash before that leaves none of them."""
        if on:
            self.part = _UNIT_BEGINS
            return
        part, self.part = self.part, 0
        if part == _UNIT_GOES_ON:
            view: memoryview | bytearray | None = self.view
            if self.part_base != self.base:  # what came after it found no room
                view = self.segments.view(self.part_base)
            assert view is not None
            end_part(view, self.part_at)

    def append_batch(self, batch: PublishBatch, now_ms: int) -> int:
        """Append and index every message of `batch` that has a route, in order; return the new end of the log.

        Raises:
            DiskFullError, MessageTooLargeError: `batch.appended` messages got through; of that one there is no trace.
                None did of a batch that `is_whole`.
        """
        body_buf = batch.buf
        extra_buf = batch.extra
        routes = batch.routes
        flags = host_flags(batch.born_host, self.store_host)
        self.store_ms = max(self.store_ms, now_ms)
        batch.appended = 0
        if batch.is_whole:
            self._make_room_for_all(batch, len(body_buf), len(extra_buf))
        i = 0
        while i < batch.count:
            route = routes[batch.route_index[i]]
            if route is None:
                batch.physical_offset[i] = -1
                batch.queue_offset[i] = -1
            else:
                self._append(batch, i, route, flags, body_buf, extra_buf)
            i += 1
            batch.appended = i
        return self.base + self.position

    def _append(
        self,
        batch: PublishBatch,
        i: int,
        route: Route,
        host_bits: int,
        body_buf: bytes | bytearray | memoryview,
        extra_buf: bytes | bytearray | memoryview,
    ) -> None:
        """Write one record and index it."""
        head = self.head
        sys_flag = (batch.sys_flag[i] & ~_HOST_FLAGS) | host_bits
        is_indexed = (sys_flag & _NOT_DISPATCHED) == 0
        count = route.dispatch.count if is_indexed else 0
        if self.part:
            sys_flag |= self.part << _UNIT_SHIFT
        self._make_room(batch, i, route, count, len(body_buf), len(extra_buf))
        queue_offset = head.next_offset(route.topic_ref) if is_indexed else 0
        at = self._write(batch, i, route, sys_flag, count, queue_offset, body_buf, extra_buf)
        start = self.position
        if is_indexed:
            head.add(route.topic_ref, start)
            if count > 0:
                head.add_set(route.dispatch.queue_refs, count, start)
        self.position = at
        if self.part:
            self.part, self.part_base, self.part_at = _UNIT_GOES_ON, self.base, start
        self.message_count += 1
        self.dispatch_count += count
        batch.physical_offset[i] = self.base + start
        batch.queue_offset[i] = queue_offset

    def _write(
        self,
        batch: PublishBatch,
        i: int,
        route: Route,
        sys_flag: int,
        count: int,
        queue_offset: int,
        body_buf: bytes | bytearray | memoryview,
        extra_buf: bytes | bytearray | memoryview,
    ) -> int:
        """Write one record where the next belongs; return the position after it."""
        dst = self.view
        start = self.position
        now_ms = self.store_ms
        born_ms = batch.born_ms[i]
        body_start = batch.body_start[i]
        body_end = batch.body_end[i]
        extra_start = batch.extra_start[i]
        extra_end = batch.extra_end[i]
        at = write_fixed(
            dst,
            start,
            magic_of(len(route.topic)),
            octets.crc32(body_buf, body_start, body_end),
            route.queue_id,
            batch.flag[i],
            queue_offset,
            self.base + start,
            sys_flag,
            born_ms if born_ms > 0 else now_ms,
            batch.born_host,
            now_ms,
            self.store_host,
            batch.reconsume_times[i],
            0,
        )
        octets.write_u32(dst, at, body_end - body_start)
        at += 4
        octets.copy_bytes(dst, at, body_buf, body_start, body_end - body_start)
        at = write_topic(dst, at + body_end - body_start, route.topic)
        properties_at = at
        at = octets.put_bytes(dst, at + 2, route.prefix)
        at = octets.put_bytes(dst, at, batch.origin)
        if extra_end > extra_start:
            octets.copy_bytes(dst, at, extra_buf, extra_start, extra_end - extra_start)
            at += extra_end - extra_start
            if dst[at - 1] != 2:  # some clients leave the last separator off
                octets.write_u8(dst, at, 2)
                at += 1
        if count > 0:
            at = self._write_dispatch(dst, at, route.dispatch)
        octets.write_u16(dst, properties_at, at + _CRC_BYTES - properties_at - 2)
        octets.write_u32(dst, start, at + _CRC_BYTES - start)
        return write_crc(dst, start, at)

    def _make_room_for_all(self, batch: PublishBatch, body_limit: int, extra_limit: int) -> None:
        """See to it that all messages of a batch fit into the newest segment, so that none fails after the first."""
        for i in range(batch.count):
            self._check(batch, i, body_limit, extra_limit)
        most = self.segments.segment_bytes
        need = bound_batch(batch, self.head, self.set_again_bytes, most)
        entries = count_entries(batch)
        if need > most:
            raise MessageTooLargeError("batch", need, most)
        if entries >= self.entries_max:
            raise MessageTooLargeError("batch", entries, self.entries_max)
        if need > self.size - self.position or self.head.entry_count + entries >= self.entries_max:
            self._roll(need)

    def _make_room(
        self, batch: PublishBatch, i: int, route: Route, count: int, body_limit: int, extra_limit: int
    ) -> None:
        """See to it that the record fits, with the set it refers to, into the newest segment; check the positions."""
        self._check(batch, i, body_limit, extra_limit)
        need = bound_record(batch, i, route, count, self.head, 0)
        if need > self.size - self.position or self.head.entry_count + count >= self.entries_max:
            self._roll(need)
        dispatch = route.dispatch
        if count > 0 and dispatch.is_interned and not self._is_near(dispatch):
            self._write_set(dispatch, need)

    def _check(self, batch: PublishBatch, i: int, body_limit: int, extra_limit: int) -> None:
        """Check the positions of a message, and the size of its body."""
        body_size = batch.body_end[i] - batch.body_start[i]
        if batch.body_start[i] < 0 or body_size < 0 or batch.body_end[i] > body_limit:
            raise IndexError("a body outside its buffer")
        if batch.extra_start[i] < 0 or batch.extra_end[i] < batch.extra_start[i] or batch.extra_end[i] > extra_limit:
            raise IndexError("properties outside their buffer")
        if body_size > self.body_bytes_max:
            raise MessageTooLargeError("body", body_size, self.body_bytes_max)

    def _is_near(self, dispatch: DispatchSet) -> bool:
        """Return whether a set's newest record is in this segment, and not too far behind."""
        return self.base <= dispatch.written_at and self.base + self.position < dispatch.again_at

    def _write_dispatch(self, dst: bytearray | memoryview, at: int, dispatch: DispatchSet) -> int:
        """Write the properties that say which queues the record is in, and where; return the position after them."""
        if dispatch.is_interned:
            at = octets.put_bytes(dst, at, _SET_NAME)
            at = octets.write_decimal(dst, at, dispatch.written_at)
            octets.write_u8(dst, at, 2)
            return at + 1
        head = self.head
        refs = dispatch.queue_refs
        at = octets.put_bytes(dst, at, dispatch.text)
        for k in range(dispatch.count):
            at = octets.write_decimal(dst, at, head.next_offset(refs[k]))
            octets.write_u8(dst, at, 44)
            at += 1
        octets.write_u8(dst, at - 1, 2)
        return at

    def _write_set(self, dispatch: DispatchSet, need: int) -> None:
        """Write the record of an interned set to the newest segment, or to the next with `need` bytes behind it."""
        size = _HEAD_BYTES + len(_SET_TOPIC) + _SET_HEADER_BYTES + len(dispatch.text) + _CRC_BYTES
        for k in range(dispatch.count):
            value = self.head.next_offset(dispatch.queue_refs[k])
            size += 1
            while value > _VARINT_MASK:
                value >>= 7
                size += 1
        if size + need > self.size - self.position:
            self._roll(size + need)
        dst = self.view
        start = self.position
        at = write_fixed(
            dst,
            start,
            magic_of(len(_SET_TOPIC)),
            0,
            0,
            0,
            0,
            self.base + start,
            host_flags(self.store_host, self.store_host),
            self.store_ms,
            self.store_host,
            self.store_ms,
            self.store_host,
            0,
            0,
        )
        body_start = at + 4
        at = self._write_set_body(dst, body_start, dispatch)
        octets.write_u32(dst, body_start - 4, at - body_start)
        octets.write_u32(dst, start + 8, octets.crc32(dst, body_start, at))
        at = write_topic(dst, at, _SET_TOPIC)
        octets.write_u16(dst, at, _CRC_BYTES)
        octets.write_u32(dst, start, at + 2 + _CRC_BYTES - start)
        self.position = write_crc(dst, start, at + 2)
        dispatch.written_at = self.base + start
        dispatch.again_at = self.base + start + max(self.set_again_bytes, _SET_SHARE * (self.position - start))

    def _write_set_body(self, dst: bytearray | memoryview, at: int, dispatch: DispatchSet) -> int:
        """Write the names and next offsets of a set at `at`; return the position after them."""
        refs = dispatch.queue_refs
        octets.write_u32(dst, at, SET_VERSION)
        octets.write_u32(dst, at + 4, dispatch.count)
        octets.write_u32(dst, at + 8, len(dispatch.text))
        at = octets.put_bytes(dst, at + _SET_HEADER_BYTES, dispatch.text)
        for k in range(dispatch.count):
            value = self.head.next_offset(refs[k])
            while value > _VARINT_MASK:
                octets.write_u8(dst, at, (value & _VARINT_MASK) | 0x80)
                value >>= 7
                at += 1
            octets.write_u8(dst, at, value)
            at += 1
        return at

    def _roll(self, need: int) -> None:
        """Go on in another segment, which must have room for `need` bytes."""
        if need > self.segments.segment_bytes:
            raise MessageTooLargeError("record", need, self.segments.segment_bytes)
        self.prepare_at = 0  # the one that was ready is used up, or there was none
        self.segments.roll(self.position + _BLANK_BYTES)
        if self.size > 0:
            octets.write_u32(self.view, self.position, self.size - self.position)
            octets.write_u32(self.view, self.position + 4, MAGIC_BLANK)
            self.on_roll(self.base)
        self.go_on_at(0, self.store_ms)

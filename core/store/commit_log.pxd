import cython
from core cimport octets
from core.message cimport DispatchSet, PublishBatch, Route
from core.store.head_index cimport HeadIndex
from core.store.record_bounds cimport bound_batch, bound_record, count_entries
from core.store.record_write cimport end_part, host_flags, magic_of, write_crc, write_fixed, write_topic

cdef Py_ssize_t _CRC_BYTES
cdef Py_ssize_t _BLANK_BYTES
cdef bytes _SET_NAME
cdef bytes _SET_TOPIC
cdef Py_ssize_t _HEAD_BYTES
cdef int _HOST_FLAGS
cdef int _NOT_DISPATCHED
cdef Py_ssize_t _SET_HEADER_BYTES
cdef long long _VARINT_MASK
cdef Py_ssize_t _SET_SHARE
cdef Py_ssize_t _PAGE_BYTES
cdef Py_ssize_t _TOUCHED_PAGES_MAX
cdef int _UNIT_BEGINS
cdef int _UNIT_GOES_ON
cdef int _UNIT_SHIFT


@cython.final
cdef class CommitLog:
    cdef readonly object segments
    cdef readonly HeadIndex head
    cdef readonly object on_roll
    cdef public bytes store_host
    cdef readonly Py_ssize_t body_bytes_max
    cdef public long long entries_max
    cdef public Py_ssize_t set_again_bytes
    cdef unsigned char[::1] view
    cdef readonly long long base
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t touched_end
    cdef readonly Py_ssize_t touched_pages
    cdef bint is_synced
    cdef public long long prepare_at
    cdef readonly long long store_ms
    cdef readonly long long message_count
    cdef readonly long long dispatch_count
    cdef int part
    cdef long long part_base
    cdef Py_ssize_t part_at

    cpdef long long written_until(self)

    @cython.locals(is_end_near=bint, at=Py_ssize_t, is_last=bint)
    cpdef bint touch_ahead(self) except -1

    @cython.locals(at=Py_ssize_t)
    cpdef touch_pages(self)

    cpdef note_sync(self)

    @cython.locals(part=int, view="unsigned char[::1]")
    cpdef keep_together(self, bint on)

    @cython.locals(
        body_buf="const unsigned char[::1]", extra_buf="const unsigned char[::1]", routes=list, route=Route,
        flags=int, i=Py_ssize_t,
    )
    cpdef Py_ssize_t append_batch(self, PublishBatch batch, long long now_ms) except -1

    @cython.locals(
        head=HeadIndex, sys_flag=int, is_indexed=bint, count=Py_ssize_t, start=Py_ssize_t, queue_offset="long long",
        at=Py_ssize_t,
    )
    cdef int _append(
        self, PublishBatch batch, Py_ssize_t i, Route route, int host_bits, const unsigned char[::1] body_buf,
        const unsigned char[::1] extra_buf
    ) except -1

    @cython.locals(
        dst="unsigned char[::1]", start=Py_ssize_t, now_ms="long long", born_ms="long long", body_start=Py_ssize_t,
        body_end=Py_ssize_t, extra_start=Py_ssize_t, extra_end=Py_ssize_t, at=Py_ssize_t, properties_at=Py_ssize_t,
    )
    cdef Py_ssize_t _write(
        self, PublishBatch batch, Py_ssize_t i, Route route, int sys_flag, Py_ssize_t count, long long queue_offset,
        const unsigned char[::1] body_buf, const unsigned char[::1] extra_buf
    ) except -1

    @cython.locals(i=Py_ssize_t, most="long long", need="long long", entries="long long")
    cdef int _make_room_for_all(self, PublishBatch batch, Py_ssize_t body_limit, Py_ssize_t extra_limit) except -1

    @cython.locals(dispatch=DispatchSet, need=Py_ssize_t)
    cdef int _make_room(
        self, PublishBatch batch, Py_ssize_t i, Route route, Py_ssize_t count, Py_ssize_t body_limit,
        Py_ssize_t extra_limit
    ) except -1

    @cython.locals(body_size=Py_ssize_t)
    cdef int _check(self, PublishBatch batch, Py_ssize_t i, Py_ssize_t body_limit, Py_ssize_t extra_limit) except -1

    @cython.locals(head=HeadIndex, refs="int[::1]", k=Py_ssize_t)
    cdef Py_ssize_t _write_dispatch(self, unsigned char[::1] dst, Py_ssize_t at, DispatchSet dispatch) except -1

    cdef bint _is_near(self, DispatchSet dispatch) except -1

    @cython.locals(
        size=Py_ssize_t, k=Py_ssize_t, value="long long", dst="unsigned char[::1]", start=Py_ssize_t, at=Py_ssize_t,
        body_start=Py_ssize_t,
    )
    cdef int _write_set(self, DispatchSet dispatch, Py_ssize_t need) except -1

    @cython.locals(refs="int[::1]", k=Py_ssize_t, value="long long")
    cdef Py_ssize_t _write_set_body(self, unsigned char[::1] dst, Py_ssize_t at, DispatchSet dispatch) except -1

    cdef int _roll(self, Py_ssize_t need) except -1

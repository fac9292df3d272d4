import cython

cdef long long _HOLES_MAX
cdef long long _ROW_BYTES
cdef int _WATCHED
cdef int _GROWN
cdef long long _ENTRIES_BYTES
cdef Py_ssize_t _WARM_QUEUES
cdef int _WARM_FROM_QUEUES
cdef long long _PLACE_MAX
cdef long long _PAGE_ENTRIES
cdef long long _HALF_PAGE
cdef Py_ssize_t _AHEAD_MAX


@cython.final
cdef class HeadIndex:
    cdef readonly int queue_count
    cdef readonly long long entry_count
    cdef readonly int watched_count
    cdef Py_ssize_t grown_count
    cdef public int hole
    cdef int export_ref
    cdef long long export_number
    cdef object row_memory
    cdef object flag_memory
    cdef object entry_memory
    cdef long long[::1] bases
    cdef int[::1] cells
    cdef unsigned char[::1] flags
    cdef int[::1] entries
    cdef int[::1] grown
    cdef long long top
    cdef int warmed
    cdef long long[::1] ahead
    cdef Py_ssize_t ahead_count
    cdef int nothing

    cdef map_rows(self)
    cdef start_entries(self)
    cpdef ensure(self, int queue_count)

    @cython.locals(capacity="long long", chunk="long long", end="long long")
    cdef Py_ssize_t add_chunk(self, long long tail, long long count) except -1

    @cython.locals(wider="int[::1]", index=Py_ssize_t)
    cdef int mark_grown(self, int ref) except -1

    @cython.locals(cell=Py_ssize_t, count=int, tail="long long")
    cpdef Py_ssize_t add(self, int ref, int position) except -1

    @cython.locals(place="long long")
    cpdef touch_ahead(self)

    @cython.locals(total=int, index=Py_ssize_t)
    cpdef warm(self, int[::1] refs, Py_ssize_t start, Py_ssize_t end)

    @cython.locals(start=Py_ssize_t, end=Py_ssize_t, index=Py_ssize_t)
    cpdef add_set(self, int[::1] refs, Py_ssize_t count, int position)

    cpdef Py_ssize_t next_offset(self, int ref) except -1
    cpdef Py_ssize_t first_offset(self, int ref) except -1

    @cython.locals(gap="long long")
    cpdef set_next_offset(self, int ref, long long offset)

    @cython.locals(index="long long", count="long long", size="long long")
    cpdef Py_ssize_t lookup(
        self, int ref, long long offset, Py_ssize_t count_max, int[::1] out_positions
    ) except -1

    @cython.locals(
        count="long long", capacity="long long", first="long long", chunk="long long", end="long long",
        low="long long", place="long long", entry="long long",
    )
    cdef Py_ssize_t copy_entries(
        self, int ref, long long index, long long size, int[::1] out, Py_ssize_t at
    ) except -1

    @cython.locals(flags="unsigned char")
    cpdef watch(self, int ref, bint on)

    @cython.locals(taken=Py_ssize_t, index=Py_ssize_t, ref=int, flags="unsigned char")
    cpdef Py_ssize_t take_grown(self, list into) except -1

    @cython.locals(frozen=HeadIndex, ref=int)
    cpdef HeadIndex detach(self)

    @cython.locals(found="long long", ref=int)
    cpdef Py_ssize_t count_queues(self) except -1

    @cython.locals(filled=Py_ssize_t, ref=int, count="long long")
    cpdef Py_ssize_t export_queues(self, int start, int end, long long place, long long[::1] out) except -1

    @cython.locals(filled=Py_ssize_t, room=Py_ssize_t, size="long long")
    cpdef Py_ssize_t export_entries(self, int[::1] out) except -1

    @cython.locals(size=Py_ssize_t, index=Py_ssize_t, ref=Py_ssize_t)
    cpdef Py_ssize_t export_next_offsets(self, Py_ssize_t start, long long[::1] out) except -1

    @cython.locals(size=Py_ssize_t, index=Py_ssize_t)
    cpdef Py_ssize_t export_first_offsets(self, Py_ssize_t start, long long[::1] out) except -1

    @cython.locals(index=Py_ssize_t)
    cpdef put_first_offsets(self, Py_ssize_t start, Py_ssize_t count, long long[::1] out)

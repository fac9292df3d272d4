import cython

cdef long long _RING_MIN
cdef long long _RING_KEPT_MAX
cdef long long _SPARSE_MIN
cdef long long _SPARSE_RATIO
cdef bytearray _NO_RING
cdef dict _NO_STRAGGLERS
cdef list _NO_HEAP


@cython.final
cdef class Window:
    cdef public long long base
    cdef public long long next_offset
    cdef public long long hidden_count
    cdef public long long shown_count
    cdef bytearray _ring
    cdef long long _mask
    cdef long long _shown_low
    cdef dict _stragglers
    cdef list _shown_stragglers
    cdef Py_ssize_t _found_count

    cpdef int code(self, long long offset) except -1

    @cython.locals(before=cython.int)
    cpdef put(self, long long offset, int code)
    cpdef append(self, long long offset, int code)

    @cython.locals(gap="long long")
    cpdef skip_to(self, long long next_offset)

    @cython.locals(base="long long", end="long long", mask="long long", ring=bytearray)
    cpdef advance(self)

    @cython.locals(
        count=Py_ssize_t, offset="long long", end="long long", mask="long long", code=cython.int, ring=bytearray
    )
    cpdef Py_ssize_t find_shown(self, long long[::1] into, Py_ssize_t count_max) except -1

    @cython.locals(i=Py_ssize_t)
    cpdef use_found(self, long long[::1] offsets, Py_ssize_t used)
    cpdef bint is_empty(self) except -1
    cdef _note_shown(self, long long offset)
    cdef _push_shown(self, long long offset)
    cdef _put_straggler(self, long long offset, int code)

    @cython.locals(offset="long long", mask="long long", grown=bytearray)
    cdef _make_room(self, long long end)

    @cython.locals(offset="long long", half="long long", live="long long")
    cdef bint _thin_out_half(self) except -1

    @cython.locals(offset="long long", code=cython.int)
    cdef _thin_out(self, long long end)

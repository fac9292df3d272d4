import cython

from core.message cimport StoredBatch
from core.pop.changes cimport ChangeLog

cdef int _ACK
cdef int _HIDE
cdef int _TAKE
cdef int _STATE
cdef int _COUNTED_MAX
cdef long long _RING_MIN
cdef long long _RING_KEPT_MAX
cdef long long _SPARSE_MIN
cdef long long _SPARSE_RATIO


cdef class InFlight:
    cdef public unsigned int number
    cdef public long long base
    cdef public long long next_offset
    cdef public long long hidden_count
    cdef public long long ready_count
    cdef public long long skipped_count
    cdef ChangeLog _log
    cdef bytearray _ring
    cdef long long _mask
    cdef long long _ready_low
    cdef dict _stragglers
    cdef list _ready_stragglers
    cdef dict _attempts
    cdef Py_ssize_t _found_count
    cdef dict _until

    @cython.locals(
        offsets="long long[::1]", attempts="int[::1]", count=Py_ssize_t, i=Py_ssize_t, offset="long long"
    )
    cpdef take_new(self, StoredBatch into, long long until_ms)

    @cython.locals(count=Py_ssize_t, offset="long long", end="long long", mask="long long", code=cython.int, ring=bytearray)
    cpdef Py_ssize_t find_ready(self, long long[::1] into, Py_ssize_t count_max) except -1

    @cython.locals(taken=Py_ssize_t, used=Py_ssize_t, i=Py_ssize_t, size="long long", offset="long long")
    cpdef Py_ssize_t take_again(
        self, long long[::1] offsets, Py_ssize_t consumed, StoredBatch into, long long bytes_max, long long until_ms
    ) except -1

    @cython.locals(code=cython.int, attempt="long long")
    cdef long long _give_again(self, long long offset, long long until_ms) except -1

    @cython.locals(wrong="long long", i=Py_ssize_t, offset="long long", code=cython.int)
    cpdef long long ack_many(self, long long[::1] offsets, Py_ssize_t count) except -2

    @cython.locals(wrong="long long", i=Py_ssize_t, offset="long long", code=cython.int)
    cpdef long long hide_many(self, long long[::1] offsets, Py_ssize_t count, long long until_ms) except -2

    @cython.locals(offset="long long", shown=Py_ssize_t)
    cpdef Py_ssize_t show_due(self, long long first, long long end, long long until_ms) except -1

    @cython.locals(offset="long long")
    cpdef apply(self, int kind, long long first, long long count, long long value)

    @cython.locals(code=cython.int, attempt="long long")
    cdef _apply_one(self, int kind, long long offset, long long value)

    cdef int _code(self, long long offset) except -1
    cdef long long _attempt_of(self, long long offset, int code) except -1

    @cython.locals(before=cython.int)
    cdef _set_code(self, long long offset, int code)
    cdef _note_ready(self, long long offset)

    @cython.locals(gap="long long")
    cdef _skip_to(self, long long next_offset)

    @cython.locals(offset="long long", mask="long long", size="long long", grown=bytearray)
    cdef _make_room(self, long long end)

    @cython.locals(offset="long long", half="long long", live="long long")
    cdef bint _thin_out_half(self) except -1

    @cython.locals(offset="long long", code=cython.int)
    cdef _thin_out(self, long long end)

    @cython.locals(base="long long", end="long long", mask="long long", ring=bytearray)
    cdef _advance(self)

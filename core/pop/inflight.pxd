# Results are Py_ssize_t: Cython 3.3 spoils the error value of a long long when many modules are compiled in one run.
import cython

from core.message cimport StoredBatch
from core.pop.changes cimport ChangeLog
from core.pop.window cimport Window

cdef int _ACK
cdef int _HIDE
cdef int _TAKE
cdef int _STATE
cdef int _COUNTED_MAX
cdef dict _NOTHING


@cython.final
cdef class InFlight:
    cdef public unsigned int number
    cdef public Window window
    cdef public long long skipped_count
    cdef public long long again_count
    cdef ChangeLog _log
    cdef dict _attempts
    cdef dict _until
    cdef bint _is_partial

    @cython.locals(
        window=Window, offsets="long long[::1]", attempts="int[::1]", i=Py_ssize_t, offset="long long"
    )
    cpdef take_new(self, StoredBatch into, long long until_ms)

    @cython.locals(taken=Py_ssize_t, used=Py_ssize_t, size="long long", offset="long long")
    cpdef Py_ssize_t take_again(
        self, long long[::1] offsets, Py_ssize_t consumed, StoredBatch into, long long bytes_max, long long until_ms
    ) except -1

    @cython.locals(window=Window, wrong="long long", done=Py_ssize_t, i=Py_ssize_t, offset="long long")
    cpdef Py_ssize_t ack_many(self, long long[::1] offsets, Py_ssize_t count) except -2

    @cython.locals(wrong="long long", i=Py_ssize_t, offset="long long", code=cython.int)
    cpdef Py_ssize_t hide_many(self, long long[::1] offsets, Py_ssize_t count, long long until_ms) except -2

    @cython.locals(code=cython.int)
    cpdef bint is_taken(self, long long offset, long long attempt) except -1

    @cython.locals(offset="long long", shown=Py_ssize_t)
    cpdef Py_ssize_t show_due(self, long long first, long long end, long long until_ms) except -1

    @cython.locals(offset="long long", code=cython.int)
    cpdef write_states(self, ChangeLog log, long long first, long long end)

    @cython.locals(offset="long long")
    cpdef apply(self, int kind, long long first, long long count, long long value)

    @cython.locals(code=cython.int)
    cdef _apply_one(self, int kind, long long offset, long long value)

    @cython.locals(attempt="long long")
    cdef Py_ssize_t _give_again(self, long long offset, long long until_ms) except -1
    cdef _put_attempt(self, long long offset, long long attempt)
    cdef Py_ssize_t _attempt_of(self, long long offset, int code) except -1
    cdef _put(self, long long offset, int code)
    cdef _put_until(self, long long offset, long long until_ms)

import cython

from core.engine cimport Engine
from core.lmq.waiters cimport Reader, Waiters


cdef class ReaderTurns:
    cdef readonly Engine engine
    cdef public object schedule
    cdef public object on_reader_error
    cdef public bint has_work
    cdef readonly Waiters _waiters
    cdef list _grown
    cdef list _shown
    cdef dict _requested
    cdef readonly object _awaited
    cdef bint _is_awaited
    cdef dict _put_off

    cpdef request_run(self, Reader reader)

    cdef _wake_up(self)

    cpdef run_readers(self, long long now_ms)

    @cython.locals(grown=list, ready=dict)
    cdef list _take_ready(self)

    cdef dict _put_some_off(self, dict ready)

    @cython.locals(reader=Reader, _=int)
    cdef _run_rounds(self, list readers, long long now_ms)

    cdef bint _run_reader(self, Reader reader, long long now_ms) except -1

from gateway.runtime cimport sync_calls


cdef class FlushThread:
    cdef object _store
    cdef object _rounds
    cdef object _loop
    cdef object _on_synced
    cdef bint _is_asked
    cdef bint _is_running
    cdef bint _is_telling
    cdef bint _is_stopping
    cdef long long _gathers_until_ns
    cdef long long _took_ns
    cdef object _next_look
    cdef readonly object _work
    cdef object _flush
    cdef object _error
    cdef object _thread
    cdef int _asked_fd
    cdef int _done_fd

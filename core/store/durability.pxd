import cython

from core.store.message_store cimport MessageStore


cdef class Durability:
    cdef readonly bint is_failed
    cdef public object request_flush
    cdef MessageStore _store
    cdef bint _is_sync
    cdef list _waiting
    cdef list _covered
    cdef bint _is_flushing
    cdef bint _wants_all

    cpdef when_stored(self, callback)

    cpdef when_durable(self, callback)

    @cython.locals(is_at_risk=bint)
    cpdef when_kept(self, callback)

    cdef _call_when_safe(self, callback, bint is_at_risk)

    @cython.locals(wants_all=bint)
    cpdef begin_flush(self)

    @cython.locals(nobody_waits=bint)
    cpdef end_flush(self, error)

    cdef _call_covered(self)

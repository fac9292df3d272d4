import cython

from core.store.message_store cimport MessageStore


cdef class Durability:
    cdef readonly bint is_failed
    cdef public object request_flush
    cdef MessageStore _store
    cdef readonly bint is_sync
    cdef list _waiting
    cdef list _covered
    cdef bint _is_flushing
    cdef bint _nobody_waits
    cdef bint _wants_all
    cdef long long _company
    cdef bint _has_tables

    cpdef when_stored(self, long long until, then)

    cpdef when_durable(self, then)

    @cython.locals(is_at_risk=bint)
    cpdef when_kept(self, then)

    cdef _call_when_safe(self, then, bint is_at_risk)

    cdef _call_at_once(self, then)

    cpdef bint wants_company(self) except -1

    @cython.locals(wants_all=bint)
    cpdef begin_flush(self)

    cpdef bint end_flush(self, error, long long count_max=*) except -1

    cpdef bint tell_more(self, long long count_max=*) except -1

    @cython.locals(covered=list, count="long long", i="long long")
    cdef _call_covered(self, error, long long count_max)

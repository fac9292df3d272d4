import cython

from core.pop.changes cimport ChangeLog


cdef class PopJournal:
    cdef public ChangeLog changes
    cdef public object names
    cdef public dict dropped
    cdef public long long next_number
    cdef object _journal
    cdef object _snapshot
    cdef object _parts
    cdef ChangeLog _copy
    cdef bint _is_copying
    cdef dict _unwritten
    cdef long long _compact_at
    cdef bint _is_full

    @cython.locals(changes=ChangeLog, began_at="long long")
    cpdef write(self)

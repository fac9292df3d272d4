import cython

@cython.final
cdef class Segment:
    cdef readonly object base
    cdef readonly object size
    cdef readonly object path
    cdef public object disk_bytes
    cdef public object first_store_ms


@cython.final
cdef class Segments:
    cdef readonly object folder
    cdef readonly object segment_bytes
    cdef object _spare
    cdef object _spare_numbers
    cdef object _next
    cdef bint _is_making
    cdef Py_ssize_t _mapped_max
    cdef readonly object _mapped
    cdef public object newest
    cdef public list unsynced
    cdef list _untrimmed
    cdef object _dropped
    cdef readonly list segments
    cdef public object first_base

    cdef Segment _last(self)

    cpdef view(self, base)

import cython

cdef Py_ssize_t _PARTS_FROM
cdef Py_ssize_t _PARTS
cdef int _SHIFT


@cython.final
cdef class BytesMap:
    cdef list _parts
    cdef Py_ssize_t _count

    cpdef object get(self, bytes key)

    @cython.locals(part=dict, before=Py_ssize_t)
    cpdef put(self, bytes key, object value)

    cpdef drop(self, bytes key)

    @cython.locals(mixed=Py_hash_t)
    cdef dict _part(self, bytes key)

    cdef _maybe_part(self)

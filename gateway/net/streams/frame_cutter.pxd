import cython

from gateway.net.streams cimport masks

cdef int _FIN
cdef int _BINARY
cdef int _CONTROL
cdef int _MASKED
cdef int _SHORT_BYTES
cdef int _SHORT_MAX
cdef int _IN_2_BYTES
cdef int _16_BITS
cdef int _TOP_BIT
cdef int _KEY_BYTES
cdef int _UNKNOWN
cdef int _BROKEN
cdef long long _EVERYTHING


@cython.final
cdef class FrameCutter:
    cdef bytes _data
    cdef Py_ssize_t _at
    cdef long long _left
    cdef bytes _key
    cdef bint _is_in_message
    cdef readonly bint is_plain

    cpdef feed(self, bytes data)

    @cython.locals(
        data=bytes, piece=bytes, start=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t, end=Py_ssize_t, turn=Py_ssize_t
    )
    cpdef bytes take(self)

    @cython.locals(first=int, second=int, size="long long", is_control=bint, start=Py_ssize_t, width=int)
    cdef Py_ssize_t _begin(self, bytes data, Py_ssize_t at) except -2


@cython.locals(size="long long", place=Py_ssize_t, has_shorter_form=bint)
cdef long long _read_length(bytes data, Py_ssize_t at, int width) except -3

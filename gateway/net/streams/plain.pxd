import cython

from gateway.net cimport socket_calls


@cython.final
cdef class PlainStream:
    cdef object _socket
    cdef object _write
    cdef int _fd
    cdef bint _has_sent
    cdef bint _is_behind

    @cython.locals(sent="Py_ssize_t")
    cpdef bint write(self, data) except -1

    cpdef Py_ssize_t waiting_bytes(self) except -1

    cpdef acknowledge(self)

import cython

from gateway.amqp.codec cimport cut_frame

cdef Py_ssize_t _FRAME_OVERHEAD
cdef const unsigned char[::1] _NOTHING


@cython.final
cdef class Incoming:
    cdef bytes data
    cdef const unsigned char[::1] view
    cdef Py_ssize_t pos
    cdef bint is_deaf
    cdef bytearray _tail
    cdef Py_ssize_t _need

    cpdef receive(self, bytes data)

    cpdef bint has_tail(self)

    cpdef bint is_waiting(self)

    cpdef Py_ssize_t cut(self, Py_ssize_t payload_max) except -1

    @cython.locals(start=Py_ssize_t)
    cpdef bytes take_payload(self, Py_ssize_t size)

    @cython.locals(rest=Py_ssize_t)
    cpdef keep_tail(self, bint is_over, bint is_framed)

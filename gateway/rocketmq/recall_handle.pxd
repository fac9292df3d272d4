import cython

from core cimport octets
from gateway.rocketmq.send_run cimport SendRun, SendTarget

cdef bytes _VERSION
cdef const unsigned char[::1] _LETTERS
cdef unsigned char _PADDING
cdef unsigned char _SPACE
cdef Py_ssize_t _THIRD


cdef class Handles:
    cdef bytes _broker_name
    cdef public long long[::1] dues

    cpdef Py_ssize_t measure(self, SendRun run, Py_ssize_t i) except -1

    @cython.locals(
        size=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, second="unsigned int", third="unsigned int",
        word="unsigned int",
    )
    cpdef Py_ssize_t write(self, SendRun run, Py_ssize_t i, unsigned char[::1] out, Py_ssize_t pos) except -1

    @cython.locals(target=SendTarget, size=Py_ssize_t, rest="long long")
    cdef Py_ssize_t _measure_text(self, SendRun run, Py_ssize_t i) except -1

    @cython.locals(target=SendTarget)
    cdef int _write_text(self, SendRun run, Py_ssize_t i, unsigned char[::1] out, Py_ssize_t pos) except -1


cdef Py_ssize_t _put(unsigned char[::1] out, Py_ssize_t pos, bytes piece) except -1

cdef Py_ssize_t _put_word(unsigned char[::1] out, Py_ssize_t pos, bytes piece) except -1

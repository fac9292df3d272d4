import cython

from gateway.rocketmq.codec cimport Frames, cut_frames
from gateway.rocketmq.commands cimport Command, decode_header


cdef class FrameInput:
    cdef public Frames frames
    cdef Py_ssize_t _frame_bytes_max
    cdef object _data
    cdef Py_ssize_t _pos
    cdef bytearray _tail
    cdef Py_ssize_t _wanted

    cpdef receive_data(self, bytes data)

    cpdef bint cut(self) except -1

    cpdef unread(self, Py_ssize_t i)

    @cython.locals(frames=Frames, start=Py_ssize_t, body=Py_ssize_t)
    cpdef Command decode(self, Py_ssize_t i)


cdef class Connection:
    cdef public bytes origin
    cdef FrameInput _input
    cdef object _run
    cdef bytes _born_host
    cdef Py_ssize_t _at

    cpdef receive_data(self, bytes data)

    cpdef unread(self, event)

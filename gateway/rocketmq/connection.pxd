from gateway.rocketmq.codec cimport Frames


cdef class FrameInput:
    cdef public Frames frames
    cdef Py_ssize_t _frame_bytes_max
    cdef object _data
    cdef Py_ssize_t _pos
    cdef bytearray _tail
    cdef Py_ssize_t _wanted

    cpdef receive_data(self, bytes data)

    cpdef bint cut(self) except -1

    cpdef decode(self, Py_ssize_t i)


cdef class Connection:
    cdef public bytes origin
    cdef FrameInput _input
    cdef object _run
    cdef bytes _born_host

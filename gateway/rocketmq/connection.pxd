from lmq.remoting.frames cimport FrameInput


cdef class Connection:
    cdef public bytes origin
    cdef FrameInput _input
    cdef object _run
    cdef bytes _born_host
    cdef Py_ssize_t _at

    cpdef receive_data(self, bytes data)

    cpdef unread(self, event)

import cython

from lmq.remoting cimport integers
from lmq.remoting.commands cimport Command, decode_header

cdef Py_ssize_t _PREFIX_BYTES
cdef unsigned int _BINARY


cdef class Frames:
    cdef public Py_ssize_t capacity
    cdef public Py_ssize_t count
    cdef public object buf
    cdef public int[::1] code
    cdef public int[::1] header_type
    cdef public int[::1] header_start
    cdef public int[::1] header_end
    cdef public int[::1] body_end


@cython.locals(
    count=Py_ssize_t, end=Py_ssize_t, start=Py_ssize_t, size="unsigned int",
    word="unsigned int", header_bytes="unsigned int", header_type="unsigned int",
)
cpdef Py_ssize_t cut_frames(
    const unsigned char[::1] buf, Py_ssize_t pos, Frames frames, unsigned int frame_bytes_max
) except -1

@cython.locals(code=int)
cdef int _peek_code(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, unsigned int header_type) except -1


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

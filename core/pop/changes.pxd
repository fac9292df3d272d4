import cython

from core cimport octets

cdef int _CHANGE_BYTES
cdef int _COUNT_MAX


@cython.final
cdef class ChangeLog:
    cdef public long long taken
    cdef public long long taken_again
    cdef public long long done
    cdef public long long given_back
    cdef public long long timed_out
    cdef public long long ending
    cdef public Py_ssize_t used
    cdef public bytearray buf
    cdef unsigned char[::1] _view
    cdef unsigned int _number
    cdef int _kind
    cdef long long _first
    cdef long long _end
    cdef long long _value

    cpdef add(self, unsigned int number, int kind, long long offset, long long value)

    @cython.locals(kind=cython.int)
    cpdef close_run(self)

    @cython.locals(pos=Py_ssize_t)
    cpdef put(self, unsigned int number, int kind, long long offset, long long count, long long value)

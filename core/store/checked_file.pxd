import cython

from core cimport octets

cdef Py_ssize_t _BLOCK_BYTES


cdef class CheckedFile:
    cdef readonly object path
    cdef readonly object kind
    cdef readonly object map
    cdef readonly long long size
    cdef readonly long long segment_base
    cdef const unsigned int[::1] block_crcs
    cdef unsigned char[::1] is_checked

    @cython.locals(crc="unsigned int")
    cdef int check_block(self, Py_ssize_t number, const unsigned char[::1] data, Py_ssize_t at) except -1

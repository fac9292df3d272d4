import cython

from core cimport octets

cdef int _RECORD_BYTES_MAX
cdef int _OVERHEAD
cdef int _HEAD_BYTES
cdef int _SEED_BYTES


@cython.locals(start=Py_ssize_t, end=Py_ssize_t)
cpdef Py_ssize_t write_records(
    unsigned char[::1] buf, Py_ssize_t pos, const unsigned char[::1] records, Py_ssize_t size
) except -1


@cython.locals(size=Py_ssize_t, crc="unsigned int")
cpdef Py_ssize_t check_record(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1


@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t find_records_end(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

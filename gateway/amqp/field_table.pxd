from libc.stdint cimport uint32_t

import cython

from core cimport octets

cdef int _TABLE_DEPTH_MAX
cdef int _TABLE_FIELDS_MAX


cdef class Field:
    cdef readonly str kind
    cdef readonly object value


cpdef int fixed_size(int kind) noexcept


@cython.locals(kind=int, size=int, length=uint32_t)
cpdef Py_ssize_t check_value(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, int depth) except? -2


@cython.locals(size=int)
cdef Py_ssize_t check_items(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, int depth) except? -2


@cython.locals(size=int)
cdef Py_ssize_t check_entries(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, int depth) except? -2


@cython.locals(length=uint32_t)
cpdef Py_ssize_t check_table(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except? -2


@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t skip_value(const unsigned char[::1] buf, Py_ssize_t pos) except -1


@cython.locals(count=int)
cpdef bint has_many(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1


@cython.locals(value=Py_ssize_t, name=str)
cpdef dict read_table(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end)


@cython.locals(kind=int)
cdef object _read_value(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end)

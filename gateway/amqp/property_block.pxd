import cython

from core cimport octets

from gateway.amqp.field_table cimport check_table

cdef int _EXTRA_BYTES_MAX


cdef class BlockReader:
    cdef public int delivery_mode
    cdef public Py_ssize_t content_type_start
    cdef public Py_ssize_t content_type_end
    cdef public Py_ssize_t headers_start
    cdef public Py_ssize_t headers_end
    cdef public Py_ssize_t user_id_start
    cdef public Py_ssize_t user_id_end

    @cython.locals(flags="unsigned int", bit=int)
    cpdef int read(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    @cython.locals(after=Py_ssize_t)
    cdef Py_ssize_t _read_property(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, int bit
    ) except -1

    @cython.locals(named=bytes)
    cpdef void check_user(self, const unsigned char[::1] buf, bytes user) except *

    @cython.locals(limit=Py_ssize_t, block=bytes, text=bytes, headers=bytes)
    cpdef Py_ssize_t write_extra(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t out_pos
    ) except -1


@cython.locals(pos=Py_ssize_t, name_end=Py_ssize_t, name=bytes)
cdef Py_ssize_t _write_headers(bytes src, unsigned char[::1] out, Py_ssize_t out_pos, Py_ssize_t limit) except -1


cdef bint is_storable(bytes name, bytes value) except -1


cdef bint is_text(bytes value) except -1


cdef Py_ssize_t _write_pair(bytes name, bytes value, unsigned char[::1] out, Py_ssize_t pos) except -1


@cython.locals(kind=bytes)
cdef Py_ssize_t _skip_value(bytes src, Py_ssize_t pos) except -1


@cython.locals(kind=bytes)
cpdef simple_value(bytes src, Py_ssize_t pos)

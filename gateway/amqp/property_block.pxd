import cython

from core cimport octets
from core.envelope cimport write_escaped_field

from gateway.amqp.field_table cimport check_table, skip_value

cdef int _EXTRA_BYTES_MAX
cdef int _BLOCK_BYTES_MAX


cdef class BlockReader:
    cdef public int delivery_mode
    cdef public Py_ssize_t content_type_start
    cdef public Py_ssize_t content_type_end
    cdef public Py_ssize_t headers_start
    cdef public Py_ssize_t headers_end
    cdef public Py_ssize_t user_id_start
    cdef public Py_ssize_t user_id_end
    cdef public Py_ssize_t correlation_start
    cdef public Py_ssize_t correlation_end
    cdef public long long ttl_ms
    cdef public bint has_copies

    @cython.locals(flags="unsigned int", bit=int)
    cpdef int read(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    @cython.locals(after=Py_ssize_t)
    cdef Py_ssize_t _read_property(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, int bit
    ) except -1

    @cython.locals(named=bytes)
    cpdef void check_user(self, const unsigned char[::1] buf, bytes user) except *

    @cython.locals(limit=Py_ssize_t, block=bytes, start=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t write_extra(
        self,
        const unsigned char[::1] buf,
        Py_ssize_t pos,
        Py_ssize_t block_end,
        unsigned char[::1] out,
        Py_ssize_t out_pos,
    ) except -1


@cython.locals(size=Py_ssize_t, ends_so=cython.bint)
cdef bint has_copies(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1


@cython.locals(pos=Py_ssize_t, name_start=Py_ssize_t, name_end=Py_ssize_t, value=bytes)
cdef Py_ssize_t _write_headers(
    const unsigned char[::1] buf,
    (Py_ssize_t, Py_ssize_t) span,
    unsigned char[::1] out,
    Py_ssize_t out_pos,
    Py_ssize_t limit,
) except -1


@cython.locals(name=bytes)
cdef bint is_storable(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


@cython.locals(seen=int, pos=Py_ssize_t, letter=int)
cdef bint is_text(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _write_value(bytes value, unsigned char[::1] out, Py_ssize_t pos) except -1


cdef Py_ssize_t _write_pair(bytes name, bytes value, unsigned char[::1] out, Py_ssize_t pos) except -1


@cython.locals(kind=int, end=Py_ssize_t)
cpdef bytes simple_value(const unsigned char[::1] buf, Py_ssize_t pos)


@cython.locals(value=int)
cdef long long _integer(const unsigned char[::1] buf, Py_ssize_t pos, int kind) except? -1

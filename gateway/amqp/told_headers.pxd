import cython

from core cimport octets
from core.envelope cimport write_escaped, write_escaped_field, write_field

from gateway.amqp.field_table cimport skip_value

cdef int _ROOM
cdef bytes _CORRELATION
cdef bytes _RESPONSE_TOPIC
cdef bytes _FORMAT
cdef bytes _PAIR
cdef bytes _TYPES
cdef bytes _CORRELATION_HEADER
cdef bytes _FORMAT_HEADER
cdef bytes _RESPONSE_HEADER
cdef int _RATIO
cdef long long _NO_NUMBER


@cython.final
cdef class ToldHeaders:
    cdef public bint has_response_topic
    cdef public bint has_correlation
    cdef public bint has_format
    cdef bytes _types

    @cython.locals(
        name_start=Py_ssize_t, name_end=Py_ssize_t, is_plain=cython.bint, kind=int, number=cython.longlong
    )
    cpdef Py_ssize_t write(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t out_pos,
        Py_ssize_t limit,
    ) except -1

    @cython.locals(name=bytes, text=bytes, pair=bytes)
    cdef Py_ssize_t _write_odd(
        self, const unsigned char[::1] buf, Py_ssize_t name_start, Py_ssize_t name_end, Py_ssize_t end,
        unsigned char[::1] out, Py_ssize_t pos, Py_ssize_t limit,
    ) except -1


cdef Py_ssize_t _write_name(
    const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
) except -1


@cython.locals(kind=int, number=cython.longlong, k=Py_ssize_t)
cpdef long long read_whole_number(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except? -1


cdef bytes type_entry(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end)


@cython.locals(letter=int)
cpdef bytes escaped(bytes text)


cpdef bint is_topic(bytes text) except -1


@cython.locals(name=bytes)
cpdef bint is_storable(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


@cython.locals(seen=int, pos=Py_ssize_t, letter=int)
cpdef bint is_text(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


cdef bint _is_utf8(bytes text) except -1

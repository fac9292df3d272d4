import cython

from core cimport octets
from core.envelope cimport write_escaped_field, write_field

from gateway.amqp.field_table cimport check_table, skip_value
from gateway.amqp.told_headers cimport ToldHeaders, is_text, is_topic

cdef int _EXTRA_BYTES_MAX
cdef int _BLOCK_BYTES_MAX
cdef unsigned int _TOLD_FLAGS
cdef tuple _TOLD_NAMES
cdef int _PRIORITY
cdef int _REPLY_TO
cdef int _TIMESTAMP
cdef bytes _KEY_LETTERS
cdef int _ROOM


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
    cdef public Py_ssize_t reply_start
    cdef unsigned int _told_flags
    cdef long long[::1] _told_start
    cdef long long[::1] _told_end
    cdef ToldHeaders _headers

    @cython.locals(flags="unsigned int", bit=int)
    cpdef int read(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    @cython.locals(after=Py_ssize_t)
    cdef Py_ssize_t _read_property(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, int bit
    ) except -1

    @cython.locals(named=bytes)
    cpdef void check_user(self, const unsigned char[::1] buf, bytes user) except *

    @cython.locals(
        limit=Py_ssize_t, block=bytes, start=Py_ssize_t, end=Py_ssize_t, headers=ToldHeaders, is_told=cython.bint
    )
    cpdef Py_ssize_t write_extra(
        self,
        const unsigned char[::1] buf,
        Py_ssize_t pos,
        Py_ssize_t block_end,
        unsigned char[::1] out,
        Py_ssize_t out_pos,
    ) except -1

    @cython.locals(number=int, start=Py_ssize_t, end=Py_ssize_t, name=bytes, value=bytes)
    cdef Py_ssize_t _write_told(
        self, const unsigned char[::1] buf, unsigned char[::1] out, Py_ssize_t out_pos, Py_ssize_t limit
    ) except -1


@cython.locals(size=Py_ssize_t, ends_so=cython.bint)
cdef bint has_copies(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1


cpdef bint is_plain_key(bytes key) except -1


@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _write_value(bytes value, unsigned char[::1] out, Py_ssize_t pos) except -1


cdef Py_ssize_t _write_pair(bytes name, bytes value, unsigned char[::1] out, Py_ssize_t pos) except -1

import cython

from core cimport octets
from core.envelope cimport field_code, is_text, read_decimal, write_unescaped
from gateway.mqtt cimport varint
from gateway.mqtt.publish_properties cimport is_topic

cdef int _OTHER
cdef int _HIDDEN
cdef int _CONTENT_TYPE
cdef int _ESCAPED_CONTENT_TYPE
cdef int _TTL_MS
cdef int _FORMAT
cdef int _RESPONSE_TOPIC
cdef int _CORRELATION
cdef int _PAIR
cdef bytes _DISPATCH_START
cdef Py_ssize_t _EXTRA_BYTES
cdef long long _SECONDS_MAX
cdef Py_ssize_t _LENGTH_MAX
cdef Py_ssize_t _KNOWN_BYTES


cpdef Py_ssize_t block_bytes_max(Py_ssize_t size)


@cython.final
cdef class BlockWriter:
    cdef unsigned char[::1] _block
    cdef unsigned char[::1] _known
    cdef Py_ssize_t _known_size
    cdef Py_ssize_t _known_start
    cdef Py_ssize_t _known_block_size
    cdef long long _known_age_ms
    cdef bint _expires
    cdef int _seen

    @cython.locals(size=Py_ssize_t)
    cpdef Py_ssize_t write(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, long long age_ms, long long identifier,
        unsigned char[::1] out, Py_ssize_t out_pos, int alias=*,
        bint is_own=*,
    ) except -1

    @cython.locals(
        first=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t, told_end=Py_ssize_t, noted_end=Py_ssize_t,
        after=Py_ssize_t, name_end=Py_ssize_t, code=int
    )
    cdef Py_ssize_t _write_fields(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, long long age_ms, bint is_own,
        unsigned char[::1] out,
    ) except -1

    @cython.locals(size=Py_ssize_t)
    cdef bint _has_same_start(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    @cython.locals(size=Py_ssize_t)
    cdef bint _holds(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t known_pos, long long age_ms
    ) except -1

    @cython.locals(size=Py_ssize_t)
    cdef void _note(
        self, const unsigned char[::1] buf, Py_ssize_t first, Py_ssize_t start, Py_ssize_t told_end, Py_ssize_t end
    ) except *

    @cython.locals(bit=int, after=Py_ssize_t)
    cdef Py_ssize_t _write_told(
        self, const unsigned char[::1] buf, int code, Py_ssize_t pos, Py_ssize_t name_end, Py_ssize_t end,
        long long age_ms, unsigned char[::1] out, Py_ssize_t size,
    ) except -1


@cython.locals(left_ms="long long", after=Py_ssize_t)
cdef Py_ssize_t _write_known(
    const unsigned char[::1] buf, int code, Py_ssize_t start, Py_ssize_t end, long long age_ms,
    unsigned char[::1] out, Py_ssize_t pos,
) except -1


@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _write_user(
    const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t name_end, Py_ssize_t end, unsigned char[::1] out,
    Py_ssize_t pos,
) except -1


@cython.locals(middle=Py_ssize_t, name_end=Py_ssize_t, value_end=Py_ssize_t)
cdef Py_ssize_t _write_pair(
    const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
) except -1

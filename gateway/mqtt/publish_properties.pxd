import cython

from core cimport octets
from core.envelope cimport (
    field_code,
    is_plain,
    is_text,
    read_decimal,
    write_escaped,
    write_escaped_field,
    write_field,
    write_unescaped,
)

cdef int _SOUND
cdef int _MALFORMED
cdef int _VIOLATION
cdef int _NO_ALIAS
cdef int _TOO_LARGE
cdef Py_ssize_t _BYTES_MAX
cdef int _OTHER
cdef int _HIDDEN
cdef int _CONTENT_TYPE
cdef int _ESCAPED_CONTENT_TYPE
cdef int _TTL_MS
cdef int _FORMAT
cdef int _RESPONSE_TOPIC
cdef int _CORRELATION
cdef int _PAIR
cdef bytes _CONTENT_TYPE_NAME
cdef bytes _ESCAPED_NAME
cdef bytes _CORRELATION_NAME
cdef bytes _PAIR_NAME
cdef bytes _FORMAT_NAME
cdef bytes _RESPONSE_TOPIC_NAME
cdef bytes _TTL_NAME
cdef Py_ssize_t _EXTRA_RATIO
cdef Py_ssize_t _EXTRA_BYTES
cdef long long _SECONDS_MAX
cdef Py_ssize_t _LENGTH_MAX


@cython.final
cdef class PublishProperties:
    cdef readonly int alias
    cdef readonly long long expiry_s
    cdef readonly int format
    cdef Py_ssize_t _content_start
    cdef Py_ssize_t _content_end
    cdef Py_ssize_t _response_start
    cdef Py_ssize_t _response_end
    cdef Py_ssize_t _correlation_start
    cdef Py_ssize_t _correlation_end
    cdef Py_ssize_t _users_start
    cdef long long _seen

    cdef void _forget(self) noexcept

    @cython.locals(name=int, after=Py_ssize_t, bit="long long")
    cpdef int read(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    @cython.locals(after=Py_ssize_t)
    cdef Py_ssize_t _read_one(self, const unsigned char[::1] buf, int name, Py_ssize_t pos, Py_ssize_t end) except? -9

    cdef Py_ssize_t _keep_text(
        self, const unsigned char[::1] buf, int name, Py_ssize_t start, Py_ssize_t end
    ) except? -9

    cpdef Py_ssize_t write_extra(
        self, const unsigned char[::1] buf, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
    ) except -1


@cython.locals(pos=Py_ssize_t)
cdef bint _is_topic(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


@cython.locals(after=Py_ssize_t, _=int)
cdef Py_ssize_t _skip_user(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except? -9


cdef bint _is_own_name(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


@cython.locals(name=int, name_start=Py_ssize_t, name_end=Py_ssize_t, value_start=Py_ssize_t)
cdef Py_ssize_t _write_users(
    const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t out_pos
) except -1


@cython.final
cdef class BlockWriter:
    cdef unsigned char[::1] _block

    @cython.locals(size=Py_ssize_t)
    cpdef Py_ssize_t write(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, long long age_ms, long long identifier,
        unsigned char[::1] out, Py_ssize_t out_pos, int alias=*,
    ) except -1

    @cython.locals(
        size=Py_ssize_t, before=Py_ssize_t, after=Py_ssize_t, name_end=Py_ssize_t, code=int, seen=int, bit=int
    )
    cdef Py_ssize_t _write_fields(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, long long age_ms, unsigned char[::1] out
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


cdef Py_ssize_t _write_varint(unsigned char[::1] out, Py_ssize_t pos, long long value) except -1

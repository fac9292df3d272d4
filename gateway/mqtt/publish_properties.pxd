import cython

from core cimport octets
from core.envelope cimport (
    field_code,
    is_plain,
    is_text,
    write_escaped,
    write_escaped_field,
    write_field,
)

cdef int _SOUND
cdef int _MALFORMED
cdef int _VIOLATION
cdef int _NO_ALIAS
cdef int _TOO_LARGE
cdef Py_ssize_t _BYTES_MAX
cdef int _OTHER
cdef bytes _CONTENT_TYPE_NAME
cdef bytes _ESCAPED_NAME
cdef bytes _CORRELATION_NAME
cdef bytes _PAIR_NAME
cdef bytes _FORMAT_NAME
cdef bytes _RESPONSE_TOPIC_NAME
cdef bytes _TTL_NAME
cdef Py_ssize_t _EXTRA_RATIO
cdef Py_ssize_t _EXTRA_BYTES
cdef int _HAS_SEPARATOR
cdef int _NOT_ASCII_TEXT


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
    cdef int _users_kinds
    cdef long long _seen

    cdef void _forget(self) noexcept

    @cython.locals(name=int, after=Py_ssize_t, bit="long long", kinds=int, _=int)
    cpdef int read(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    @cython.locals(after=Py_ssize_t)
    cdef Py_ssize_t _read_one(self, const unsigned char[::1] buf, int name, Py_ssize_t pos, Py_ssize_t end) except? -9

    cdef Py_ssize_t _keep_text(
        self, const unsigned char[::1] buf, int name, Py_ssize_t start, Py_ssize_t end
    ) except? -9

    cpdef Py_ssize_t write_extra(
        self, const unsigned char[::1] buf, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
    ) except -1


cpdef Py_ssize_t extra_bytes_max(Py_ssize_t size)


@cython.locals(pos=Py_ssize_t)
cpdef bint is_topic(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


cdef bint _are_own(
    const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t name_end, Py_ssize_t value_start, Py_ssize_t end
) except -1


@cython.locals(name=int, name_start=Py_ssize_t, name_end=Py_ssize_t, value_start=Py_ssize_t, is_own=bint)
cdef Py_ssize_t _write_users(
    const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, bint are_plain, unsigned char[::1] out,
    Py_ssize_t out_pos,
) except -1

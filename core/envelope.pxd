import cython

from core cimport octets

cdef int _OTHER
cdef int _HIDDEN
cdef int _CONTENT_TYPE
cdef int _TTL_MS
cdef int _FORMAT
cdef int _RESPONSE_TOPIC
cdef int _CORRELATION
cdef int _PAIR
cdef int _ESCAPED_CONTENT_TYPE
cdef int _HAS_ZERO
cdef int _HAS_SEPARATOR
cdef int _HAS_HIGH
cdef bytes _DIGITS
cdef long long _TTL_MS_MAX


@cython.locals(size=Py_ssize_t, first=int, name=bytes)
cpdef int field_code(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1


cdef bint _is_of_each_record(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t size) except -1


cdef int _own_code(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t size) except -1


@cython.locals(kinds=int)
cpdef bint is_text(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


cpdef bint is_plain(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1


@cython.locals(value="long long", digit=int)
cpdef long long read_decimal(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except? -2


cpdef Py_ssize_t write_field(
    bytes name, const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
) except -1


cpdef Py_ssize_t write_escaped_field(
    bytes name, const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
) except -1


@cython.locals(k=Py_ssize_t, letter=int)
cpdef Py_ssize_t write_escaped(
    const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, int limit, unsigned char[::1] out, Py_ssize_t pos
) except -1


@cython.locals(k=Py_ssize_t, letter=int, high=int, low=int)
cpdef Py_ssize_t write_unescaped(
    const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
) except? -2


cdef int _digit(int letter) noexcept

import cython

from core cimport octets

cdef int _FIELDS
cdef long long _NO_INTEGER
cdef unsigned int _BINARY
cdef Py_ssize_t _BINARY_START
cdef dict _FIELD_NAMES


cdef class SendHeader:
    cdef public bint is_binary
    cdef public int code
    cdef public int opaque
    cdef public int flag
    cdef public int[::1] start
    cdef public int[::1] end


@cython.locals(field=int)
cpdef bint read_header(
    const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, unsigned int header_type, SendHeader header
) except *

@cython.locals(remark_bytes=int, size=Py_ssize_t, key=Py_ssize_t, field=int)
cdef bint _read_binary(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, SendHeader header) except *

@cython.locals(field=int, name=bytes)
cdef int _field_of(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -2

@cython.locals(key=Py_ssize_t)
cdef bint _read_json(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, SendHeader header) except *

@cython.locals(close=Py_ssize_t)
cdef Py_ssize_t _name_end(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -2

@cython.locals(name_bytes=Py_ssize_t, word="unsigned int", tail="unsigned int", start=Py_ssize_t, value=int)
cdef Py_ssize_t _read_member(
    const unsigned char[::1] buf, Py_ssize_t key, Py_ssize_t pos, Py_ssize_t end, SendHeader header
) except -2

@cython.locals(key=Py_ssize_t, field=int, start=Py_ssize_t, quoted=int)
cdef Py_ssize_t _read_ext(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, SendHeader header) except -2

@cython.locals(close=Py_ssize_t)
cdef Py_ssize_t _string_end(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -2

@cython.locals(start=Py_ssize_t)
cdef Py_ssize_t _value_end(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -2

@cython.locals(word="unsigned int")
cdef bint _is_word(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except *

@cython.locals(value="long long")
cdef int _small_integer(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -2

@cython.locals(value="long long", negative=bint)
cpdef long long read_integer(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except? -3

@cython.locals(used=Py_ssize_t, byte="unsigned char", point=int, low=int)
cpdef Py_ssize_t unescape(
    const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, unsigned char[::1] out
) except -2

cdef unsigned char _short_escape(unsigned char byte) noexcept

@cython.locals(value=int, at=Py_ssize_t, byte="unsigned char")
cdef int _hex_4(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -2

cdef Py_ssize_t _write_utf8(int point, unsigned char[::1] out, Py_ssize_t used) except -1

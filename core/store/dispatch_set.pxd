import cython
from core cimport octets

cdef long long _VARINT_MASK


@cython.locals(size=Py_ssize_t, at=Py_ssize_t)
cpdef Py_ssize_t shared_size(bytes left, bytes right) except -1

@cython.locals(shared=Py_ssize_t)
cpdef bytes encode_names(list names)

cpdef bytes encode_varint(long long value)

@cython.locals(value="long long", shift=int, octet="long long")
cpdef Py_ssize_t read_varint(const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t end) except -2

@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t varint_size(long long value)

@cython.locals(at=Py_ssize_t, k=Py_ssize_t, value="long long", view="const unsigned char[::1]")
cpdef tuple decode_set(bytes body)

@cython.locals(
    name=bytes, view="const unsigned char[::1]", shared="long long", size="long long", _="long long",
)
cdef list decode_names(bytes body, Py_ssize_t at, Py_ssize_t end, long long count)

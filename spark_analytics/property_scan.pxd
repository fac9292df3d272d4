import cython

from core cimport octets

cdef unsigned char _KEY_END
cdef unsigned char _VALUE_END
cdef unsigned char _COMMA


@cython.locals(
    place=Py_ssize_t,
    i=Py_ssize_t,
    pos=Py_ssize_t,
    end=Py_ssize_t,
    stop=Py_ssize_t,
    key_end=Py_ssize_t,
    which=Py_ssize_t,
)
cpdef object find_properties(
    const unsigned char[::1] buf,
    const int[::1] starts,
    const int[::1] ends,
    Py_ssize_t count,
    const unsigned char[::1] names,
    const int[::1] name_ends,
    int[::1] value_starts,
    int[::1] value_ends,
)


@cython.locals(which=Py_ssize_t, at=Py_ssize_t)
cdef Py_ssize_t _which_name(
    const unsigned char[::1] buf,
    Py_ssize_t start,
    Py_ssize_t size,
    const unsigned char[::1] names,
    const int[::1] name_ends,
) except -2


@cython.locals(i=Py_ssize_t, pos=Py_ssize_t, end=Py_ssize_t, items=int)
cpdef object count_items(
    const unsigned char[::1] buf, const int[::1] starts, const int[::1] ends, Py_ssize_t count, int[::1] into
)


@cython.locals(i=Py_ssize_t, total=Py_ssize_t, out="unsigned char[::1]")
cpdef object gather(
    const unsigned char[::1] buf, const int[::1] starts, const int[::1] ends, Py_ssize_t count, int[::1] offsets
)

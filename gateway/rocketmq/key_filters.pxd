import cython

cdef Py_ssize_t BITS
cdef Py_ssize_t PROBES


@cython.locals(
    count=Py_ssize_t, size=Py_ssize_t, value="unsigned long long", at="unsigned long long", place=Py_ssize_t,
    bits=bytearray,
)
cpdef bytes make_filter(list hashes)

@cython.locals(size=Py_ssize_t, at="unsigned long long", place=Py_ssize_t)
cpdef bint may_have(bytes bits, unsigned long long value) except -1

import cython

cdef int _CELL_SHIFT
cdef int _CELL_MASK


@cython.final
cdef class PositionMarks:
    cdef unsigned char[::1] cells
    cdef Py_ssize_t count
    cdef Py_ssize_t at
    cdef long long first
    cdef long long last

    cpdef mark(self, long long position)

    @cython.locals(end=Py_ssize_t, cell=Py_ssize_t, position="long long")
    cpdef bint find_runs(self, long long far, Py_ssize_t cells_max, list out) except -1

import cython

from core.store.head_index cimport HeadIndex


@cython.final
cdef class QueueIndex:
    cdef public object folder
    cdef public object names
    cdef public HeadIndex head
    cdef public object rebuild
    cdef public long long head_base
    cdef public list parts
    cdef public long long found_base
    cdef public long long found_offset
    cdef Py_ssize_t _hint
    cdef dict _min_offsets

    @cython.locals(size=Py_ssize_t)
    cpdef Py_ssize_t first_offsets(self, Py_ssize_t start, long long[::1] out) except -1

    @cython.locals(head=HeadIndex, first="long long", parts=list, at=Py_ssize_t)
    cpdef Py_ssize_t locate(
        self, int queue_ref, long long offset, Py_ssize_t count_max, int[::1] out_positions
    ) except -1

import cython

from core.message cimport StoredBatch
from core.store.queue_index cimport QueueIndex
from core.store.record cimport fill_batch, fill_columns, is_gap
from core.store.segments cimport Segments

cdef Py_ssize_t _POSITIONS_MAX
cdef long long _NO_LIMIT
cdef int _GONE


@cython.final
cdef class QueueReader:
    cdef Segments _segments
    cdef QueueIndex _index
    cdef long long _trusted_from
    cdef int[::1] _positions
    cdef StoredBatch _one
    cdef long long _number
    cdef const unsigned char[::1] _newest
    cdef long long _newest_base
    cdef readonly long long damaged_count

    cdef _begin(self, StoredBatch into)

    cdef bint _open(self, long long base, StoredBatch into) except -1

    @cython.locals(
        index=QueueIndex, positions="int[::1]", found=Py_ssize_t, base="long long", trusted="long long",
        count=Py_ssize_t, missing="long long"
    )
    cpdef Py_ssize_t read(
        self, int queue_ref, long long offset, StoredBatch into, Py_ssize_t count_max, Py_ssize_t bytes_max
    ) except -1

    @cython.locals(
        done=Py_ssize_t, base="long long", run=Py_ssize_t, found=Py_ssize_t, trusted="long long", before=Py_ssize_t,
        filled=Py_ssize_t
    )
    cpdef Py_ssize_t read_offsets(
        self, int queue_ref, long long[::1] offsets, Py_ssize_t count, StoredBatch into
    ) except -1

    cpdef bint read_at(self, long long physical_offset, StoredBatch into) except -1

    cdef long long _trusted_position(self, long long base, long long size)


@cython.locals(gone=Py_ssize_t, k=Py_ssize_t)
cdef Py_ssize_t count_gone(int[::1] positions, Py_ssize_t count) except -1


@cython.locals(at=Py_ssize_t)
cdef Py_ssize_t _run_length(long long[::1] offsets, Py_ssize_t start, Py_ssize_t end) except -1

import cython

from core cimport octets
from core.store.checked_file cimport CheckedFile
from core.store.head_index cimport HeadIndex
from core.store.position_marks cimport PositionMarks

cdef long long _BLOCK_ENTRIES
cdef long long _BLOCK_BYTES
cdef long long _ROW_LONGS
cdef long long _REF_MASK


@cython.final
cdef class SealedIndex(CheckedFile):
    cdef readonly long long log_position
    cdef readonly long long names_count
    cdef readonly unsigned int names_fingerprint
    cdef readonly long long entry_count
    cdef long long row_count
    cdef long long ref_max
    cdef const long long[::1] rows
    cdef const unsigned char[::1] data
    cdef const int[::1] entries

    @cython.locals(low="long long", high="long long", middle="long long", found="long long")
    cdef Py_ssize_t find_row(self, long long ref) except -2

    @cython.locals(low="long long", high="long long", middle="long long", ref="long long")
    cpdef put_first_offsets(self, Py_ssize_t start, Py_ssize_t count, long long[::1] out)

    @cython.locals(row=Py_ssize_t)
    cpdef find(self, long long ref)

    @cython.locals(block="long long")
    cdef int check_blocks(self, long long place, long long end) except -1

    @cython.locals(
        row=Py_ssize_t, index="long long", count="long long", size="long long", place="long long", entry="long long"
    )
    cpdef Py_ssize_t lookup(
        self, long long ref, long long offset, Py_ssize_t count_max, int[::1] out_positions
    ) except -1

    @cython.locals(needed="long long", k=Py_ssize_t, row=Py_ssize_t, count="long long")
    cpdef Py_ssize_t count_needed(
        self, int[::1] refs, long long[::1] offsets, Py_ssize_t start, Py_ssize_t end
    ) except -1

    @cython.locals(row=Py_ssize_t, index="long long", size="long long", place="long long", entry="long long")
    cpdef Py_ssize_t take(
        self, long long ref, long long offset, long long count_max, PositionMarks marks, HeadIndex into
    ) except -1

    @cython.locals(
        row=Py_ssize_t, first="long long", low="long long", high="long long", end="long long", middle="long long",
        at="long long"
    )
    cpdef find_from(self, long long ref, long long offset, long long position)

    cpdef check_all(self, long long start, long long end)

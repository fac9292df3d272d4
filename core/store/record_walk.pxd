import cython

from core cimport octets
from core.message cimport StoredBatch
from core.store.record cimport (
    fill_columns, find_gap_end, find_property, is_gap, is_intact, is_set, read_decimal, record_size
)

cdef bytes _SET
cdef Py_ssize_t _PLACE_AT


@cython.locals(filled=Py_ssize_t)
cpdef Py_ssize_t fill_range(
    StoredBatch into, const unsigned char[::1] buf, long long base, Py_ssize_t pos, Py_ssize_t end,
    Py_ssize_t trusted_from
) except -1


@cython.locals(at=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t)
cpdef Py_ssize_t find_way_on(const unsigned char[::1] buf, long long base, Py_ssize_t pos) except -2


@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t find_start(
    const unsigned char[::1] buf, long long base, Py_ssize_t pos, Py_ssize_t target
) except -2


@cython.locals(last="long long", at=Py_ssize_t, found="long long")
cpdef Py_ssize_t find_sets(
    StoredBatch into, const unsigned char[::1] buf, long long base, Py_ssize_t pos, Py_ssize_t end, list out
) except -1

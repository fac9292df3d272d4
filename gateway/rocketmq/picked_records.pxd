import cython

from core cimport octets
from core.message cimport StoredBatch

cdef const unsigned char[::1] _TAGS
cdef const unsigned char[::1] _SET
cdef const unsigned char[::1] _CRC
cdef const unsigned char[::1] _NAMES
cdef const unsigned char[::1] _OFFSETS
cdef Py_ssize_t _PROPERTIES_BYTES_MAX
cdef Py_ssize_t _NUMBER_BYTES


@cython.locals(buf="const unsigned char[::1]", count=Py_ssize_t, i=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
cpdef Py_ssize_t pick_tagged(StoredBatch batch, frozenset tags, int[::1] picked) except -1

@cython.locals(
    buf="const unsigned char[::1]", count=Py_ssize_t, i=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, value=bytes
)
cpdef Py_ssize_t pick_keyed(
    StoredBatch batch, const unsigned char[::1] name, bytes key, bint is_list, int[::1] picked
) except -1

@cython.locals(buf="const unsigned char[::1]", i=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
cpdef int hash_words(StoredBatch batch, const unsigned char[::1] name, list hashes) except -1

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _value_at(
    const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, const unsigned char[::1] name
) except -2

@cython.locals(at=Py_ssize_t)
cdef Py_ssize_t _value_end(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1

@cython.locals(i=Py_ssize_t)
cpdef Py_ssize_t pick_all(StoredBatch batch, int[::1] picked) except -1

@cython.locals(
    buf="const unsigned char[::1]", name="const unsigned char[::1]", is_light=bint,
    pos=Py_ssize_t, k=Py_ssize_t, i=Py_ssize_t, after=Py_ssize_t, at=Py_ssize_t, size=Py_ssize_t
)
cpdef Py_ssize_t copy_records(
    StoredBatch batch, int[::1] picked, Py_ssize_t count, bytes light_name, unsigned char[::1] out, Py_ssize_t pos
) except -1

@cython.locals(
    buf="const unsigned char[::1]", start=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t, at=Py_ssize_t, rest=Py_ssize_t,
    crc_at=Py_ssize_t, properties_at=Py_ssize_t
)
cdef Py_ssize_t _copy_with_number(
    StoredBatch batch, Py_ssize_t i, Py_ssize_t set_at, const unsigned char[::1] name, unsigned char[::1] out,
    Py_ssize_t pos
) except -2

@cython.locals(total=Py_ssize_t, at=Py_ssize_t, i=Py_ssize_t)
cpdef Py_ssize_t copied_bytes_max(StoredBatch batch, int[::1] picked, Py_ssize_t count, bytes light_name) except -1

@cython.locals(total=Py_ssize_t, at=Py_ssize_t, i=Py_ssize_t)
cpdef Py_ssize_t sum_bodies(StoredBatch batch, int[::1] picked, Py_ssize_t first, Py_ssize_t end) except -1

@cython.locals(total="long long", at=Py_ssize_t, i=Py_ssize_t)
cpdef Py_ssize_t count_fitting(StoredBatch batch, int[::1] picked, Py_ssize_t count, long long size_max) except -1

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _put(unsigned char[::1] out, Py_ssize_t pos, const unsigned char[::1] piece) except -1

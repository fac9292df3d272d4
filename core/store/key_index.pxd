import cython

from core cimport octets
from core.message cimport StoredBatch
from core.store.checked_file cimport CheckedFile
from core.store.record cimport find_property

cdef Py_ssize_t _BLOCK_BYTES
cdef Py_ssize_t _LOOKED_MAX
cdef bytes _KEYS
cdef bytes _UNIQ_KEY
cdef unsigned int _SPACE
cdef unsigned int _END


@cython.final
cdef class KeyColumns:
    cdef readonly object taken_hashes
    cdef readonly object taken_positions
    cdef unsigned int[::1] hashes
    cdef int[::1] positions
    cdef readonly Py_ssize_t count

    @cython.locals(
        buf="const unsigned char[::1]", i=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t
    )
    cpdef Py_ssize_t take(self, StoredBatch batch, Py_ssize_t first) except -1

    @cython.locals(space=Py_ssize_t, word_end=Py_ssize_t)
    cdef int add_words(
        self, const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t end, int position
    ) except -1

    cdef int add(self, const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t end, int position) except -1


@cython.locals(at=Py_ssize_t)
cdef Py_ssize_t _value_end(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except -1

@cython.locals(k=Py_ssize_t)
cpdef int count_buckets(
    const unsigned int[::1] hashes, Py_ssize_t start, Py_ssize_t end, int shift, unsigned int[::1] counts
) except -1

@cython.locals(k=Py_ssize_t, count="unsigned int", total="unsigned int")
cpdef int add_up(unsigned int[::1] counts) except -1

@cython.locals(k=Py_ssize_t, bucket="unsigned int", at="unsigned int")
cpdef int sort_in(
    const unsigned int[::1] hashes, const int[::1] positions, Py_ssize_t start, Py_ssize_t end, int shift,
    unsigned int[::1] ends, unsigned int[::1] out_hashes, int[::1] out_positions
) except -1


@cython.final
cdef class KeyIndex(CheckedFile):
    cdef readonly bint is_whole
    cdef readonly long long seen_from
    cdef readonly long long seen_until
    cdef int shift
    cdef long long[::1] first_blocks
    cdef const unsigned char[::1] ends_bytes
    cdef const unsigned char[::1] hashes_bytes
    cdef const unsigned char[::1] positions_bytes
    cdef const unsigned int[::1] ends
    cdef const unsigned int[::1] hashes
    cdef const int[::1] positions

    @cython.locals(block=Py_ssize_t)
    cdef int check_range(
        self, Py_ssize_t part, const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end
    ) except -1

    @cython.locals(bucket=Py_ssize_t, low=Py_ssize_t, high=Py_ssize_t)
    cpdef Py_ssize_t find(
        self, unsigned int key_hash, long long start, long long end, bint is_back, int[::1] out
    ) except -1

    @cython.locals(middle=Py_ssize_t)
    cdef Py_ssize_t narrow(self, Py_ssize_t low, Py_ssize_t high, long long position) except -1

    cdef Py_ssize_t first_of(self, Py_ssize_t low, Py_ssize_t at) except -1

    cdef Py_ssize_t end_of(self, Py_ssize_t at, Py_ssize_t high) except -1

    @cython.locals(count=Py_ssize_t, last="long long", k=Py_ssize_t)
    cdef Py_ssize_t pick(self, unsigned int key_hash, Py_ssize_t low, Py_ssize_t high, int[::1] out) except -1

import cython
from core cimport octets
from core.message cimport StoredBatch

cdef unsigned int _MAGIC_V1
cdef unsigned int _MAGIC_V2
cdef unsigned int _MAGIC_BLANK
cdef Py_ssize_t _RECORD_BYTES_MIN
cdef Py_ssize_t _CRC_BYTES
cdef long long _GAP_MARK
cdef Py_ssize_t _GAP_MARK_AT
cdef Py_ssize_t _GAP_BODY_AT
cdef bytes _GAP_TOPIC
cdef Py_ssize_t _GAP_TAIL_BYTES
cdef bytes _SET_TOPIC
cdef Py_ssize_t _CRC_FROM
cdef int _CRC_MARKS
cdef bytes _CRC_NAME
cdef bytes _TOPIC_NAME
cdef Py_ssize_t _TOPIC_NAME_BYTES
cdef int _AHEAD
cdef int _DECIMAL_DIGITS_MAX


@cython.locals(end=Py_ssize_t, size=Py_ssize_t, magic="unsigned int")
cpdef Py_ssize_t record_size(const unsigned char[::1] buf, Py_ssize_t pos) except -2


@cython.locals(
    size=Py_ssize_t, end=Py_ssize_t, physical_offset="long long", sys_flag=int, at=Py_ssize_t, store_ms="long long",
    reconsume_times=int, body_start=Py_ssize_t, body_size=Py_ssize_t, topic_size=Py_ssize_t,
    properties_start=Py_ssize_t,
)
cpdef bint fill_columns(
    StoredBatch into, Py_ssize_t i, const unsigned char[::1] buf, Py_ssize_t pos, long long base
) except -1


@cython.locals(start=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, likeness=int)
cpdef bint is_intact(StoredBatch into, Py_ssize_t i, const unsigned char[::1] buf) except -1


cpdef bint is_gap(StoredBatch into, Py_ssize_t i, const unsigned char[::1] buf) except -1


@cython.locals(end=Py_ssize_t)
cpdef bint is_set(StoredBatch into, Py_ssize_t i, const unsigned char[::1] buf) except -1


@cython.locals(size=Py_ssize_t, data_end=Py_ssize_t)
cpdef Py_ssize_t find_gap_end(const unsigned char[::1] buf, long long base, Py_ssize_t pos) except -2


@cython.locals(value="long long", digits=int, digit=int)
cpdef Py_ssize_t read_decimal(const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t end) except -2


@cython.locals(alike=int, k=Py_ssize_t)
cdef int _crc_likeness(const unsigned char[::1] buf, Py_ssize_t at) except -1


@cython.locals(value="long long", pos=Py_ssize_t, digit=int)
cdef Py_ssize_t _read_digits(const unsigned char[::1] buf, Py_ssize_t at) except -2


@cython.locals(k=Py_ssize_t, size=Py_ssize_t, after=Py_ssize_t)
cdef _fetch_ahead(
    const unsigned char[::1] buf, int[::1] positions, Py_ssize_t first, Py_ssize_t end, long long left
)


@cython.locals(
    filled=Py_ssize_t, left="long long", fetched=Py_ssize_t, k=Py_ssize_t, pos=Py_ssize_t, size=Py_ssize_t,
    is_there=bint
)
cpdef Py_ssize_t fill_batch(
    StoredBatch into, const unsigned char[::1] buf, long long base, int[::1] positions, Py_ssize_t count,
    long long queue_offset, long long bytes_max, Py_ssize_t trusted_from
) except -1


cdef bint has_row(
    StoredBatch into, Py_ssize_t i, const unsigned char[::1] buf, long long physical_offset
) except -1


@cython.locals(after=Py_ssize_t)
cpdef Py_ssize_t find_sound(
    StoredBatch into, const unsigned char[::1] buf, long long base, Py_ssize_t pos, Py_ssize_t end
) except -2


cpdef bint has_prefix(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, bytes prefix) except -1


@cython.locals(size=Py_ssize_t, pos=Py_ssize_t)
cpdef Py_ssize_t find_property(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, bytes name) except -2

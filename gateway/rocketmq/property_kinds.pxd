import cython

from core cimport octets

cdef int _PLAIN
cdef int _DROP
cdef int _IS_DISPATCH
cdef int _IS_UNIQ
cdef int _IS_SPACE_TOPIC
cdef int _IS_DELAY
cdef int _IS_TIMER
cdef int _IS_TRAN
cdef int _IS_GROUP
cdef int _IS_REQUEST
cdef const unsigned char[::1] _NAMES
cdef Py_ssize_t _WAIT_AT
cdef Py_ssize_t _POP_CK_AT
cdef Py_ssize_t _DISPATCH_AT
cdef Py_ssize_t _OFFSETS_AT
cdef Py_ssize_t _CRC_AT
cdef Py_ssize_t _UNIQ_AT
cdef Py_ssize_t _LMQ_TOPIC_AT
cdef Py_ssize_t _DELAY_AT
cdef Py_ssize_t _TIMER_AT
cdef Py_ssize_t _TRAN_AT
cdef Py_ssize_t _REAL_TOPIC_AT
cdef Py_ssize_t _REAL_QID_AT
cdef Py_ssize_t _GROUP_AT
cdef Py_ssize_t _REPLY_TO_AT
cdef frozenset _SAID_NAMES


@cython.locals(size=Py_ssize_t, first="unsigned char")
cpdef int kind_of(const unsigned char[::1] text, Py_ssize_t pos, Py_ssize_t end) except -1

cdef int _kind_of_later(const unsigned char[::1] text, Py_ssize_t pos, Py_ssize_t size) except -1

cdef int _kind_of_ours(const unsigned char[::1] text, Py_ssize_t pos, Py_ssize_t size) except -1

cdef bint _is_ours(const unsigned char[::1] text, Py_ssize_t pos, Py_ssize_t size) except *

cdef bint _is_name(
    const unsigned char[::1] text, Py_ssize_t pos, Py_ssize_t size, Py_ssize_t name_at, Py_ssize_t name_size
) except *

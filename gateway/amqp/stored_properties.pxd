import cython

from core cimport octets

from gateway.amqp.property_block cimport BlockReader

cdef int _FLAG_MARK
cdef int _FLAG_MARK_MASK
cdef unsigned int _FLAG_CONTENT_TYPE
cdef unsigned int _FLAGS
cdef int _NAME_OTHER
cdef int _NAME_HIDDEN
cdef int _NAME_CLIENT
cdef int _NAME_USER
cdef int _NAME_PROTOCOL
cdef int _NAME_EXCHANGE
cdef int _NAME_KEY
cdef int _NAME_AMQP
cdef int _NAME_CONTENT_TYPE
cdef int _NAME_ENVELOPE
cdef int _NAME_PAIR
cdef int _NAME_TOLD
cdef int _NAME_DIED
cdef int _SHORT_BYTES_MAX
cdef int _CLIENT_AT
cdef int _USER_AT
cdef int _PROTOCOL_AT
cdef int _TIMESTAMP_AT
cdef int _QOS_AT
cdef int _RETAIN_AT
cdef int _TOPIC_AT
cdef int _ENTRIES_END
cdef bytes _ENTRIES
cdef bytes _ROCKETMQ


@cython.locals(first="unsigned int")
cpdef int name_code(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1


@cython.locals(rest="unsigned int")
cdef int _lmq_name(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t size) except -1


cdef class StoredProperties:
    cdef public Py_ssize_t client_start
    cdef public Py_ssize_t client_end
    cdef public Py_ssize_t user_start
    cdef public Py_ssize_t user_end
    cdef public Py_ssize_t protocol_start
    cdef public Py_ssize_t protocol_end
    cdef public Py_ssize_t exchange_start
    cdef public Py_ssize_t exchange_end
    cdef public Py_ssize_t key_start
    cdef public Py_ssize_t key_end
    cdef public Py_ssize_t amqp_start
    cdef public Py_ssize_t amqp_end
    cdef public Py_ssize_t content_type_start
    cdef public Py_ssize_t content_type_end
    cdef public Py_ssize_t died_start
    cdef public Py_ssize_t died_end
    cdef public Py_ssize_t other_start
    cdef public bint has_envelope
    cdef BlockReader _checker
    cdef const unsigned char[::1] _entries
    cdef const unsigned char[::1] _rocketmq

    cdef void _forget(self) noexcept

    @cython.locals(after=Py_ssize_t, name_end=Py_ssize_t, code=int)
    cpdef int read(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    cdef void _keep(self, int code, Py_ssize_t start, Py_ssize_t end) noexcept

    cpdef amqp_block(self, const unsigned char[::1] buf)

    @cython.locals(flags="unsigned int", content_type_size=Py_ssize_t, block=Py_ssize_t, table=Py_ssize_t)
    cpdef Py_ssize_t write_block(
        self,
        const unsigned char[::1] buf,
        (Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) span,
        int flag,
        long long born_ms,
        unsigned char[::1] out,
        Py_ssize_t pos,
    ) except -1

    cdef Py_ssize_t _write_own_headers(
        self, const unsigned char[::1] buf, int flag, long long born_ms, unsigned char[::1] out, Py_ssize_t pos
    ) except -1

    cdef Py_ssize_t _write_entry(
        self, Py_ssize_t start, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
    ) except -1

    cdef Py_ssize_t _write_text(
        self,
        Py_ssize_t entry,
        Py_ssize_t entry_end,
        const unsigned char[::1] buf,
        Py_ssize_t start,
        Py_ssize_t end,
        unsigned char[::1] out,
        Py_ssize_t pos,
    ) except -1


cdef Py_ssize_t _write_short(bytes text, unsigned char[::1] out, Py_ssize_t pos) except -1


@cython.locals(after=Py_ssize_t, name_end=Py_ssize_t, code=int)
cdef Py_ssize_t _write_user_headers(
    const unsigned char[::1] buf,
    Py_ssize_t pos,
    Py_ssize_t end,
    object fields,
    unsigned char[::1] out,
    Py_ssize_t out_pos,
) except -1


@cython.locals(name=bytes, size=Py_ssize_t)
cdef Py_ssize_t _write_user_header(
    const unsigned char[::1] buf,
    Py_ssize_t pos,
    Py_ssize_t name_end,
    Py_ssize_t end,
    object fields,
    unsigned char[::1] out,
    Py_ssize_t out_pos,
) except -1

import cython

from core cimport octets
from core.message cimport PublishBatch
from gateway.mqtt.columns cimport RunColumns

cdef int _MORE
cdef int _PUBLISHES
cdef int _ACKS
cdef int _PACKET
cdef int _PINGS
cdef Py_ssize_t _JOIN_BYTES_MAX
cdef Py_ssize_t _TOPIC_KEPT_BYTES_MAX
cdef Py_ssize_t _HEADER_BYTES_MAX
cdef Py_ssize_t _NEAR_BYTES_MAX
cdef int _PINGREQ
cdef Py_ssize_t _PINGS_MAX
cdef int _FLAG_MARK
cdef int _FLAG_RETAIN
cdef int[::1] _FLAGS
cdef int _SOUND
cdef int _BAD_QOS
cdef int _BAD_DUP
cdef int _SHORT
cdef int _EMPTY_TOPIC
cdef int _NO_ID
cdef int _BAD_BLOCK
cdef int _UNKNOWN_ALIAS
cdef int _LARGE_ALIAS
cdef int _NEW_ALIAS
cdef int _FLAG_BARE
cdef int _LEVEL_5


@cython.final
cdef class PacketReader:
    cdef public RunColumns columns
    cdef public Py_ssize_t packet_bytes_max
    cdef public bint is_old
    cdef public int level
    cdef public int alias_max
    cdef public int packet_type
    cdef object _buf
    cdef Py_ssize_t _pos
    cdef Py_ssize_t _end
    cdef object _rest
    cdef Py_ssize_t _rest_pos
    cdef object _tail
    cdef Py_ssize_t _needed
    cdef Py_ssize_t _body_start
    cdef Py_ssize_t _packet_end
    cdef bytes _topic
    cdef dict _aliases

    cpdef receive_data(self, data)

    cpdef bytes take_tail(self)

    cdef void _start(self, buf) except *

    @cython.locals(taken=Py_ssize_t, wanted=Py_ssize_t)
    cdef void _complete(self, tail, data) except *

    cdef Py_ssize_t _size_of(self, buf) except -1

    @cython.locals(found=int)
    cpdef int read_next(self) except -1

    cdef void _keep_tail(self) except *

    cpdef bytes take_body(self)

    @cython.locals(size=Py_ssize_t)
    cdef int _cut_on(self) except -1

    @cython.locals(first=int, end=Py_ssize_t)
    cdef int _cut(self, const unsigned char[::1] buf) except -1

    @cython.locals(first=int, flags=int, at=Py_ssize_t, length=Py_ssize_t, shift=int)
    cdef bint _read_header(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    @cython.locals(
        columns=RunColumns, batch=PublishBatch, pos=Py_ssize_t, count=Py_ssize_t, retained_count=Py_ssize_t,
        exact_count=Py_ssize_t, body_bytes=Py_ssize_t, is_5=bint,
        topic_start=Py_ssize_t, topic_size=Py_ssize_t, topic=Py_ssize_t, first=int, at=Py_ssize_t, fault=int,
        size=Py_ssize_t,
    )
    cdef int _cut_publishes(self, const unsigned char[::1] buf, Py_ssize_t end) except -1

    cdef bint _may_be(self, int first, int flags) except -1

    @cython.locals(columns=RunColumns, size=Py_ssize_t, after=Py_ssize_t, alias=int, known=bytes)
    cdef int _take_properties(
        self, const unsigned char[::1] buf, int first, Py_ssize_t at, Py_ssize_t i
    ) except -1

    cdef bint _read_next_header(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1

    @cython.locals(qos=Py_ssize_t, topic_end=Py_ssize_t)
    cdef int _find_fault(self, const unsigned char[::1] buf, int first, Py_ssize_t at, Py_ssize_t end) except -1

    @cython.locals(topic=bytes)
    cdef Py_ssize_t _intern_topic(self, const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t size) except -1

    @cython.locals(topics=list, topic_index=dict, index=Py_ssize_t)
    cdef Py_ssize_t _intern(self, bytes topic) except -1

    @cython.locals(
        columns=RunColumns, packet_ids="int[::1]", capacity=Py_ssize_t, pos=Py_ssize_t, count=Py_ssize_t, first=int,
        size=Py_ssize_t, at=Py_ssize_t,
    )
    cdef int _cut_acks(self, const unsigned char[::1] buf, Py_ssize_t end) except -1

    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t _read_long_ack(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t i
    ) except -1

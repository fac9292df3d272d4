from libc.stdint cimport uint32_t

import cython

from core cimport octets
from core.message cimport PublishBatch

from gateway.amqp.property_block cimport BlockReader

cdef int _FRAME_METHOD
cdef int _FRAME_HEADER
cdef int _FRAME_BODY
cdef int _FRAME_HEARTBEAT
cdef int _FRAME_END
cdef uint32_t _PUBLISH
cdef uint32_t _CONTENT_CLASS
cdef int _FLAG_MARK
cdef int _FLAG_EXPIRES
cdef Py_ssize_t _EXTRA_BYTES_MAX
cdef Py_ssize_t _EXTRA_ROOM


@cython.locals(kind="long long", channel="long long", size="long long")
cpdef long long cut_frame(
    const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t payload_max
) except -1


@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t frame_size(
    const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, unsigned char kind,
    unsigned int channel, Py_ssize_t payload_max
) except -2


cdef class PublishCutter:
    cdef public PublishBatch batch
    cdef public int[::1] ends
    cdef public Py_ssize_t mandatory_count
    cdef public Py_ssize_t body_bytes
    cdef public tuple copies
    cdef str _reply_name
    cdef BlockReader _reader
    cdef bytearray _extra
    cdef unsigned char[::1] _room
    cdef Py_ssize_t _extra_first
    cdef Py_ssize_t _extra_used
    cdef dict _index
    cdef Py_ssize_t _raw_start
    cdef Py_ssize_t _raw_size
    cdef int _route
    cdef Py_ssize_t _block_start
    cdef Py_ssize_t _block_size
    cdef int _flag

    @cython.locals(batch=PublishBatch, after=Py_ssize_t)
    cpdef Py_ssize_t cut(
        self,
        const unsigned char[::1] buf,
        Py_ssize_t pos,
        Py_ssize_t end,
        unsigned int channel,
        Py_ssize_t payload_max,
        Py_ssize_t body_max,
        bytes user,
        str reply_name=*,
    ) except -1

    cpdef int add(self, bytes raw, int bits, bytes block, object body, bytes user, str reply_name=*) except -1

    cdef int _begin(self, const unsigned char[::1] src) except -1

    @cython.locals(
        size=Py_ssize_t,
        header=Py_ssize_t,
        raw=Py_ssize_t,
        key=Py_ssize_t,
        bits=Py_ssize_t,
        body_size=Py_ssize_t,
        body=Py_ssize_t,
        after=Py_ssize_t,
    )
    cdef Py_ssize_t _cut_one(
        self,
        const unsigned char[::1] buf,
        Py_ssize_t pos,
        Py_ssize_t end,
        unsigned int channel,
        Py_ssize_t payload_max,
        Py_ssize_t body_max,
        bytes user,
    ) except -2

    @cython.locals(size=Py_ssize_t, raw=bytes)
    cdef void _take_raw(
        self, const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end
    ) except *

    @cython.locals(size=Py_ssize_t, reader=BlockReader)
    cdef void _take_block(
        self, const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, bytes user
    ) except *

    cdef Py_ssize_t _write_named(self, bytes block, Py_ssize_t reply_start) except -1

    @cython.locals(batch=PublishBatch, i=Py_ssize_t)
    cdef int _append(self, int bits, Py_ssize_t body_start, Py_ssize_t body_end) except -1

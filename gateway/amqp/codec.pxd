from libc.stdint cimport uint32_t

import cython

from core cimport octets
from core.message cimport PublishBatch, StoredBatch

from gateway.amqp.property_block cimport BlockReader, StoredProperties

cdef int _FRAME_METHOD
cdef int _FRAME_HEADER
cdef int _FRAME_BODY
cdef int _FRAME_HEARTBEAT
cdef int _FRAME_END
cdef uint32_t _PUBLISH
cdef uint32_t _DELIVER
cdef uint32_t _GET_OK
cdef uint32_t _CONTENT_CLASS
cdef int _FLAG_MARK
cdef int _KEY_BYTES_MAX
cdef Py_ssize_t _EXTRA_BYTES_MAX
cdef Py_ssize_t _EXTRA_ROOM
cdef Py_ssize_t _MESSAGE_ROOM
cdef bytes _AMQ_TOPIC


@cython.locals(kind="long long", channel="long long", size="long long")
cpdef long long cut_frame(
    const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t payload_max
) except -1


@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t frame_size(
    const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, unsigned char kind, unsigned int channel, Py_ssize_t payload_max
) except -2


cdef class PublishCutter:
    cdef public PublishBatch batch
    cdef public Py_ssize_t mandatory_count
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

    @cython.locals(buf="const unsigned char[::1]", batch=PublishBatch, after=Py_ssize_t)
    cpdef Py_ssize_t cut(
        self,
        bytes src,
        Py_ssize_t pos,
        Py_ssize_t end,
        unsigned int channel,
        Py_ssize_t payload_max,
        Py_ssize_t body_max,
        bytes user,
    ) except -1

    cpdef int add(self, bytes raw, int bits, bytes block, object body, bytes user) except -1

    cdef int _begin(self, object src) except -1

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

    @cython.locals(batch=PublishBatch, i=Py_ssize_t)
    cdef int _append(self, int bits, Py_ssize_t body_start, Py_ssize_t body_end) except -1


cdef class DeliveryEncoder:
    cdef object _key_from_topic
    cdef StoredProperties _properties
    cdef const unsigned char[::1] _amq_topic
    cdef bytearray _out
    cdef unsigned char[::1] _room
    cdef Py_ssize_t _same_start
    cdef Py_ssize_t _same_size
    cdef Py_ssize_t _names_start
    cdef Py_ssize_t _names_size
    cdef Py_ssize_t _block_start
    cdef Py_ssize_t _block_size
    cdef bint _is_cut

    cpdef bytes encode_deliveries(
        self, StoredBatch stored, int channel, bytes consumer, long long first_tag, Py_ssize_t payload_max
    )

    cpdef bytes encode_get_ok(
        self, StoredBatch stored, int channel, long long tag, Py_ssize_t payload_max, long long message_count
    )

    @cython.locals(
        buf="const unsigned char[::1]", tag_text="const unsigned char[::1]", pos=Py_ssize_t, i=Py_ssize_t
    )
    cdef bytes _encode(
        self,
        StoredBatch stored,
        int channel,
        bytes consumer,
        long long first_tag,
        Py_ssize_t payload_max,
        long long message_count,
    )

    @cython.locals(room=Py_ssize_t, i=Py_ssize_t, body_size=Py_ssize_t)
    cdef int _ensure_room(self, StoredBatch stored, Py_ssize_t payload_max) except -1

    @cython.locals(out="unsigned char[::1]", frame=Py_ssize_t, size=Py_ssize_t)
    cdef Py_ssize_t _write_method(
        self,
        const unsigned char[::1] buf,
        StoredBatch stored,
        Py_ssize_t i,
        int channel,
        const unsigned char[::1] tag_text,
        long long tag,
        long long message_count,
        Py_ssize_t pos,
    ) except -1

    @cython.locals(
        out="unsigned char[::1]", start=Py_ssize_t, end=Py_ssize_t, found=StoredProperties
    )
    cdef Py_ssize_t _write_names(
        self,
        const unsigned char[::1] buf,
        StoredBatch stored,
        Py_ssize_t i,
        Py_ssize_t pos,
    ) except -1

    @cython.locals(out="unsigned char[::1]", size=Py_ssize_t, k=Py_ssize_t, letter="unsigned char")
    cdef Py_ssize_t _write_topic_key(
        self, const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, Py_ssize_t pos
    ) except -1

    @cython.locals(key=bytes)
    cdef Py_ssize_t _write_odd_key(self, const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, Py_ssize_t pos) except -1

    @cython.locals(out="unsigned char[::1]", frame=Py_ssize_t)
    cdef Py_ssize_t _write_header(
        self,
        const unsigned char[::1] buf,
        StoredBatch stored,
        Py_ssize_t i,
        int channel,
        Py_ssize_t pos,
    ) except -1

    @cython.locals(found=StoredProperties, topic_end=Py_ssize_t, size=Py_ssize_t,
                   span=(Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t))
    cdef Py_ssize_t _write_block(
        self,
        const unsigned char[::1] buf,
        StoredBatch stored,
        Py_ssize_t i,
        Py_ssize_t pos,
    ) except -1

    @cython.locals(out="unsigned char[::1]", size=Py_ssize_t)
    cdef Py_ssize_t _write_body(
        self,
        const unsigned char[::1] buf,
        Py_ssize_t start,
        Py_ssize_t end,
        int channel,
        Py_ssize_t payload_max,
        Py_ssize_t pos,
    ) except -1


cdef Py_ssize_t _write_short(
    const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, unsigned char[::1] out, Py_ssize_t pos
) except -1

from libc.stdint cimport uint32_t

import cython

from core cimport octets
from core.message cimport StoredBatch

from gateway.amqp.stored_properties cimport StoredProperties

cdef int _FRAME_METHOD
cdef int _FRAME_HEADER
cdef int _FRAME_BODY
cdef int _FRAME_END
cdef uint32_t _DELIVER
cdef uint32_t _GET_OK
cdef uint32_t _CONTENT_CLASS
cdef int _KEY_BYTES_MAX
cdef Py_ssize_t _ROOM_AT_FIRST
cdef Py_ssize_t _MESSAGE_ROOM
cdef bytes _AMQ_TOPIC


cdef class DeliveryEncoder:
    cdef public Py_ssize_t body_bytes
    cdef public bint tells_offsets
    cdef public bint counts_deliveries
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
    cdef Py_ssize_t _write_odd_key(
        self, const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end, Py_ssize_t pos
    ) except -1

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

import cython

from core cimport octets
from core.message cimport PublishBatch
from gateway.mqtt.publish_properties cimport PublishProperties, extra_bytes_max

cdef Py_ssize_t _ACK_BYTES_MAX
cdef Py_ssize_t _EXTRA_BYTES_MIN
cdef int _FLAG_MARK
cdef int _FLAG_BARE
cdef int _FLAG_EXPIRES
cdef int _MALFORMED
cdef int _PUBACK
cdef int _FAILURE


@cython.final
cdef class RunColumns:
    cdef public PublishBatch batch
    cdef public int[::1] packet_ids
    cdef public int[::1] codes
    cdef public Py_ssize_t ack_count
    cdef public int ack_type
    cdef public Py_ssize_t ping_count
    cdef public Py_ssize_t exact_count
    cdef public Py_ssize_t answer_count
    cdef public Py_ssize_t failure_count
    cdef public Py_ssize_t body_bytes
    cdef public dict topic_index
    cdef unsigned char[::1] near
    cdef unsigned char[::1] acks
    cdef PublishProperties properties
    cdef unsigned char[::1] _extra
    cdef Py_ssize_t _extra_used
    cdef Py_ssize_t _extra_rows
    cdef Py_ssize_t _block_start
    cdef Py_ssize_t _block_size
    cdef int alias

    @cython.locals(batch=PublishBatch, i=Py_ssize_t)
    cdef void begin(self) except *

    @cython.locals(
        size=Py_ssize_t, shift=int, pos=Py_ssize_t, batch=PublishBatch, properties=PublishProperties, fault=int
    )
    cdef Py_ssize_t read_block(
        self, const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t end, Py_ssize_t i
    ) except? -99

    @cython.locals(need=Py_ssize_t, larger="unsigned char[::1]")
    cdef void _write_extra(self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t i) except *

    @cython.locals(i=Py_ssize_t)
    cpdef forget_codes(self)

    cdef void hand_on_extra(self) except *


@cython.locals(batch=PublishBatch, out="unsigned char[::1]", size=Py_ssize_t, i=Py_ssize_t, qos=int)
cpdef bytes encode_acks(RunColumns columns, Py_ssize_t count)


@cython.locals(out="unsigned char[::1]", size=Py_ssize_t, i=Py_ssize_t)
cpdef bytes encode_id_packets(RunColumns columns, int first)

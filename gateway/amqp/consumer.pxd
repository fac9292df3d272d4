import cython

from core.flows cimport Outflow
from core.message cimport StoredBatch
from core.metrics cimport DoorMetrics
from gateway.amqp.channel cimport Channel
from gateway.amqp.delivery_codec cimport DeliveryEncoder
from gateway.amqp.output cimport ConnectionOutput
from gateway.amqp.shared_queue cimport SharedQueue

cdef Py_ssize_t _TAKE_COUNT_MAX
cdef long long _TAKE_BYTES_MAX


cdef class Slot:
    cdef public long long from_tag
    cdef public SharedQueue queue
    cdef public Consumer consumer


cdef class Consumer:
    cdef public Channel channel
    cdef public str tag
    cdef public SharedQueue queue
    cdef public bint no_ack
    cdef public bint exclusive
    cdef public bint is_stream
    cdef readonly object rank
    cdef public long long timeout_ms
    cdef public int slot
    cdef ConnectionOutput _output
    cdef DeliveryEncoder _encoder
    cdef DoorMetrics _metrics
    cdef Outflow _outflow
    cdef long long _prefetch
    cdef bytes _tag_text

    @cython.locals(room=Py_ssize_t)
    cpdef Py_ssize_t room(self) except? -1

    cpdef long long room_bytes(self) except? -1

    @cython.locals(channel=Channel, room=Py_ssize_t)
    cdef Py_ssize_t _room(self) except? -1

    cpdef deliver(self, StoredBatch stored)

    @cython.locals(channel=Channel, count=Py_ssize_t, first="long long", data=bytes)
    cpdef send(self, StoredBatch stored)

    cpdef flush(self)

import cython

from core.flows cimport Outflow
from core.message cimport StoredBatch
from core.metrics cimport DoorMetrics
from gateway.amqp.channel cimport Channel
from gateway.amqp.consumer cimport Slot
from gateway.amqp.delivery_codec cimport DeliveryEncoder
from gateway.amqp.first_message cimport take_first
from gateway.amqp.output cimport ConnectionOutput
from gateway.amqp.shared_queue cimport SharedQueue
from gateway.amqp.unacked cimport UnackedRing

cdef int _ACK
cdef int _DROP
cdef int _REQUEUE


cdef class Reading:
    cdef object _vhost
    cdef object _declarer
    cdef ConnectionOutput _output
    cdef DeliveryEncoder _encoder
    cdef DoorMetrics _metrics
    cdef Outflow _outflow
    cdef str _refused
    cdef public bint notes_origin
    cdef public bytes origin

    @cython.locals(
        queue=SharedQueue, stored=StoredBatch, encoder=DeliveryEncoder, ring=UnackedRing, tag="long long",
        taken=Py_ssize_t, data=bytes
    )
    cpdef bytes get(self, Channel channel, object method, long long now_ms)

    @cython.locals(ring=UnackedRing)
    cpdef settle(self, Channel channel, long long now_ms)

    @cython.locals(ring=UnackedRing, count=Py_ssize_t, found=Py_ssize_t, slot=int, kind=int)
    cdef _apply(self, Channel channel, long long now_ms)

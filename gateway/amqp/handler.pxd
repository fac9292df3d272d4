import cython

from gateway.amqp.blocking cimport Blocking
from gateway.amqp.channel cimport Channel
from gateway.amqp.connection cimport AmqpConnection
from gateway.amqp.consuming cimport Reading
from gateway.amqp.events cimport PublishRun, SettleRun
from gateway.amqp.output cimport ConnectionOutput
from gateway.amqp.pace cimport Pace
from gateway.amqp.publishing cimport Publisher
from gateway.net.protocol cimport ConnectionHandler, Transport


cdef class AmqpHandler(ConnectionHandler):
    cdef readonly ConnectionOutput output
    cdef public object declarer
    cdef public Reading reading
    cdef object _door
    cdef Transport _transport
    cdef Pace _pace
    cdef object _answers
    cdef dict _to_confirm
    cdef Blocking _blocking
    cdef object _attempt
    cdef bint _has_ended
    cdef object _denials
    cdef bytes _origin
    cdef object _identity
    cdef Publisher _publisher

    @cython.locals(connection=AmqpConnection, waiting=dict)
    cpdef on_data(self, bytes data, long long now_ms)

    cpdef next_deadline_ms(self)

    cdef AmqpConnection _begin(self, long long now_ms)

    cdef _finish(self)

    cdef _do(self, event, long long now_ms)

    cdef _do_event(self, event, long long now_ms)

    @cython.locals(answer=bytes)
    cdef _publish(self, PublishRun event, long long now_ms)

    @cython.locals(channel=Channel, number="long long", data=bytes)
    cpdef _confirm(self, dict waiting)

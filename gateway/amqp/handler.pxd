import cython

from gateway.amqp.blocking cimport Blocking
from gateway.amqp.channel cimport Channel
from gateway.amqp.confirms cimport Confirms
from gateway.amqp.connection cimport AmqpConnection
from gateway.amqp.consuming cimport Reading
from gateway.amqp.events cimport PublishRun, SettleRun
from gateway.amqp.output cimport ConnectionOutput
from gateway.amqp.publishing cimport Publisher
from gateway.net.protocol cimport ConnectionHandler, Transport


cdef class AmqpHandler(ConnectionHandler):
    cdef readonly ConnectionOutput output
    cdef readonly str client
    cdef public object declarer
    cdef public Reading reading
    cdef object _door
    cdef Transport _transport
    cdef object _vhost
    cdef public object answers
    cdef Confirms _confirms
    cdef Blocking _blocking
    cdef object _entrance
    cdef object _questions
    cdef bint _has_ended
    cdef object _denials
    cdef object _again
    cdef object _commits
    cdef bytes _origin
    cdef object _identity
    cdef Publisher _publisher

    @cython.locals(connection=AmqpConnection)
    cpdef bint on_data(self, bytes data, long long now_ms) except -1

    @cython.locals(connection=AmqpConnection, has_more=bint)
    cpdef bint go_on(self, long long now_ms) except -1

    @cython.locals(has_more=bint)
    cdef bint _work(self, AmqpConnection connection, long long now_ms) except -1

    @cython.locals(transport=Transport)
    cdef bint _act(self, AmqpConnection connection, long long now_ms) except -1

    cdef _next_event(self, AmqpConnection connection)

    cpdef next_deadline_ms(self)

    cdef AmqpConnection _begin(self, long long now_ms)

    cdef _finish(self)

    cdef _do(self, event, long long now_ms)

    cdef _do_event(self, event, long long now_ms)

    @cython.locals(answer=bytes)
    cdef _publish(self, PublishRun event, long long now_ms)

    cdef _hold(self, PublishRun event, long long now_ms)

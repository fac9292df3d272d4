import cython

from core.broker cimport Broker
from gateway.amqp.blocking cimport Blocking
from gateway.amqp.channel cimport Channel
from gateway.amqp.connection cimport AmqpConnection
from gateway.amqp.consuming cimport Reading
from gateway.amqp.events cimport PublishRun, SettleRun
from gateway.amqp.publishing cimport Publisher
from gateway.net.protocol cimport ConnectionHandler, Transport

cdef Py_ssize_t _OUTPUT_BYTES_MAX
cdef Py_ssize_t _TURN_BYTES_MAX


cdef class AmqpHandler(ConnectionHandler):
    cdef public Py_ssize_t payload_max
    cdef public object declarer
    cdef public Reading reading
    cdef object _door
    cdef Broker _broker
    cdef Transport _transport
    cdef readonly AmqpConnection _connection
    cdef bint _is_ending
    cdef bint _is_released
    cdef Py_ssize_t _put_bytes
    cdef Py_ssize_t _taken_bytes
    cdef object _answers
    cdef dict _to_confirm
    cdef Blocking _blocking
    cdef bytes _origin
    cdef object _identity
    cdef Publisher _publisher

    @cython.locals(connection=AmqpConnection, waiting=dict)
    cpdef on_data(self, bytes data, long long now_ms)

    cpdef next_deadline_ms(self)

    cdef AmqpConnection _begin(self, long long now_ms)

    cdef _finish(self)

    cpdef bint has_room(self) except -1

    cpdef put(self, bytes data)

    @cython.locals(data=bytes)
    cpdef flush(self)

    cpdef bint is_open(self, Channel channel) except -1

    cdef _do(self, event, long long now_ms)

    cdef _do_event(self, event, long long now_ms)

    @cython.locals(answer=bytes)
    cdef _publish(self, PublishRun event, long long now_ms)

    @cython.locals(channel=Channel, number="long long", data=bytes)
    cpdef _confirm(self, dict waiting)

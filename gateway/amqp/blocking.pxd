from gateway.amqp.connection cimport AmqpConnection
from gateway.amqp.output cimport ConnectionOutput


cdef class Blocking:
    cdef public object transport
    cdef object _held
    cdef ConnectionOutput _output
    cdef AmqpConnection _connection

    cpdef note_published(self, AmqpConnection connection)

    cpdef hold_if_low(self)

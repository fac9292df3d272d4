from gateway.amqp.connection cimport AmqpConnection


cdef class Blocking:
    cdef public object transport
    cdef object _held
    cdef object _flush
    cdef AmqpConnection _connection

    cpdef note_published(self, AmqpConnection connection)

    cpdef hold_if_low(self)

from core.message cimport PublishBatch
from gateway.amqp.connection cimport AmqpConnection
from gateway.amqp.output cimport ConnectionOutput
from gateway.amqp.publishing cimport body_bytes


cdef class Blocking:
    cdef public object transport
    cdef object _held
    cdef ConnectionOutput _output
    cdef AmqpConnection _connection
    cdef public object pacing
    cdef public bint is_paused
    cdef AmqpConnection _paused
    cdef object _until_ms

    cpdef note_published(self, AmqpConnection connection, PublishBatch batch, long long now_ms)

    cpdef note_taken(self, AmqpConnection connection, PublishBatch batch, long long now_ms)

    cpdef hold_if_low(self)

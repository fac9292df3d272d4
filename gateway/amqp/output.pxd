from gateway.amqp.channel cimport Channel
from gateway.amqp.connection cimport AmqpConnection
from gateway.net.protocol cimport Transport

cdef Py_ssize_t _OUTPUT_BYTES_MAX


cdef class ConnectionOutput:
    cdef public Transport transport
    cdef public AmqpConnection connection
    cdef public Py_ssize_t payload_max
    cdef public bint is_ending
    cdef public bint is_released
    cdef public object pace
    cdef Py_ssize_t _put_bytes

    cpdef bint has_room(self) except -1

    cpdef put(self, bytes data)

    cpdef flush(self)

    cpdef bint is_open(self, Channel channel) except -1

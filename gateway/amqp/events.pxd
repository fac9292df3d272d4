from core.message cimport PublishBatch
from gateway.amqp.channel cimport Channel


cdef class PublishRun:
    cdef readonly Channel channel
    cdef readonly PublishBatch batch
    cdef readonly Py_ssize_t mandatory_count
    cdef readonly Py_ssize_t body_bytes
    cdef readonly long long first_number
    cdef readonly tuple copies


cdef class SettleRun:
    cdef readonly Channel channel

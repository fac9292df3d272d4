from core.broker cimport Broker
from core.lmq.waiters cimport Reader
from gateway.net.protocol cimport Transport

cdef Py_ssize_t _TURN_BYTES_MAX


cdef class Pace(Reader):
    cdef Broker _broker
    cdef Transport _transport
    cdef Py_ssize_t _taken_bytes

    cpdef note_taken(self, Py_ssize_t size)

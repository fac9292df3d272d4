import cython

from gateway.net cimport socket_calls
from gateway.net.protocol cimport ConnectionHandler, Transport
from gateway.runtime cimport Clock, CoarseTimer, TurnRunner


@cython.final
cdef class Endpoint:
    cdef public str name
    cdef public object connect
    cdef public Clock clock
    cdef public CoarseTimer timer
    cdef public object table
    cdef public object limits
    cdef public dict refused
    cdef public TurnRunner turns
    cdef public object admission


cdef class SocketTransport(Transport):
    cdef Endpoint _endpoint
    cdef ConnectionHandler _handler
    cdef object _socket
    cdef object _write
    cdef int _fd
    cdef bint _has_written
    cdef bint _is_behind
    cdef long long _close_until_ms
    cdef long long _end_until_ms
    cdef bytes _held
    cdef bint _is_known
    cdef bint _is_reading
    cdef long long _watched_at
    cdef bint _is_held_back
    cdef public long long timer_slot

    @cython.locals(endpoint=Endpoint, handler=ConnectionHandler, timer=CoarseTimer, now_ms="long long")
    cpdef data_received(self, bytes data)

    cpdef next_deadline_ms(self)

    @cython.locals(sent="Py_ssize_t")
    cpdef write(self, data)

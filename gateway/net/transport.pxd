import cython

from gateway.net.protocol cimport ConnectionHandler, Transport
from gateway.net.shares cimport Shares
from gateway.net.streams.plain cimport PlainStream
from gateway.runtime.loop cimport CoarseTimer, TurnRunner


cdef class SocketTransport(Transport):
    cdef object _endpoint
    cdef ConnectionHandler _handler
    cdef object _socket
    cdef PlainStream _stream
    cdef str _counted_host
    cdef long long _close_until_ms
    cdef long long _end_until_ms
    cdef bytes _held
    cdef bint _is_known
    cdef bytes _untaken
    cdef bint _has_more
    cdef bint _has_ended
    cdef str _lost_reason
    cdef bint _is_waiting
    cdef bint _is_reading
    cdef bint _is_held_back
    cdef bint _is_full
    cdef bint _is_read
    cdef long long _watched_at
    cdef public long long timer_slot

    cdef bint _enter(self, str host) except -1

    cdef _begin(self, str host)

    cdef _connect(self)

    @cython.locals(shares=Shares, stream=PlainStream, timer=CoarseTimer)
    cpdef data_received(self, bytes data)

    @cython.locals(shares=Shares, turns=TurnRunner, now_ms="long long")
    cdef _work(self, bytes data)

    @cython.locals(handler=ConnectionHandler)
    cdef bint _take(self, bytes data, long long now_ms) except -1

    cdef _wait(self)

    cpdef go_on(self)

    @cython.locals(is_read=bint)
    cdef _set_read(self)

    cdef bint _is_open(self) except -1

    cdef bint _may_take(self) except -1

    cdef bint _has_left(self) except -1

    cdef bint _is_ending(self) except -1

    cpdef eof_received(self)

    @cython.locals(handler=ConnectionHandler, shares=Shares, began_ns="long long")
    cdef _tell_end(self)

    @cython.locals(stream=PlainStream)
    cpdef connection_lost(self, exc)

    @cython.locals(handler=ConnectionHandler, began_ns="long long")
    cdef _forget(self)

    cdef _tell_lost(self, str reason)

    cdef _say_end(self)

    cpdef finish(self)

    cpdef next_deadline_ms(self)

    @cython.locals(stream=PlainStream)
    cpdef write(self, data)

import cython

from core cimport octets
from core.metrics cimport DoorMetrics
from gateway.amqp.channel cimport Channel, Incomplete
from gateway.amqp.codec cimport PublishCutter
from gateway.amqp.events cimport CutterPool, PublishRun, SettleRun, make_publish_run
from gateway.amqp.heartbeat cimport Heartbeat
from gateway.amqp.incoming cimport Incoming
from gateway.amqp.unacked cimport is_settle

cdef int _HEADER
cdef int _LOGIN
cdef int _OPEN
cdef int _CLOSED
cdef int _FRAME_METHOD
cdef int _FRAMES_AT_ONCE


cdef class AmqpConnection:
    cdef public object limits
    cdef public int state
    cdef public dict channels
    cdef public bytes user
    cdef public frozenset client_capabilities
    cdef public Py_ssize_t payload_max
    cdef public Heartbeat heartbeat
    cdef long long _channel_max
    cdef public object check_channel
    cdef CutterPool _pool
    cdef str _version
    cdef DoorMetrics _metrics
    cdef Incoming _incoming
    cdef Incomplete _incomplete
    cdef list _outbox
    cdef long long _give_up_at_ms

    cpdef receive_data(self, bytes data, long long now_ms)

    cpdef take_up(self, long long now_ms)

    @cython.locals(count=Py_ssize_t)
    cpdef unread(self, PublishRun run)

    cpdef events(self)

    @cython.locals(incoming=Incoming, packed="long long", number=int, _=int)
    cdef _next_event(self)

    @cython.locals(
        channel=Channel, incoming=Incoming, cutter=PublishCutter, pos=Py_ssize_t, end=Py_ssize_t, after=Py_ssize_t
    )
    cdef _next_run(self, int kind, int number)

    cpdef send(self, bytes data)

    @cython.locals(data=bytes)
    cpdef bytes data_to_send(self)

    cpdef next_deadline_ms(self)

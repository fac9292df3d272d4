import cython

from core.broker cimport Broker
from core.metrics cimport LoopMetrics

cdef Py_ssize_t _TURN_BYTES


cdef class Clock:
    cdef long long _last_ms
    cdef long long _behind_from_ms
    cdef long long _behind_since_ns

    cpdef long long read_ns(self) except? -1

    cpdef long long machine_ms(self) except? -1

    @cython.locals(now_ms="long long", left_ms="long long")
    cpdef long long find_moment(self, long long machine_ms) except? -1

    cpdef long long read_steady_ns(self) except? -1

    @cython.locals(now_ms="long long")
    cpdef long long now_ms(self)

    @cython.locals(steady_ns="long long", passed_ms="long long", behind_ms="long long", now_ms="long long")
    cdef long long _go_on(self, long long machine_ms)


cdef class CoarseTimer:
    cdef public long long tick
    cdef Clock _clock
    cdef dict _slots
    cdef object _due
    cdef bint _is_going_on
    cdef list _moved
    cdef long long _next_slot
    cdef object _handle
    cdef object _loop

    @cython.locals(slot="long long", filed="long long")
    cpdef watch(self, timed)

    cpdef watch_soon(self, timed)


cdef class TurnRunner:
    cdef object _loop
    cdef Clock _clock
    cdef Broker _broker
    cdef bint _is_called
    cdef Py_ssize_t _arrived_bytes

    cpdef schedule(self)

    cpdef long long begin_read(self, Py_ssize_t size) except -1

    @cython.locals(began_ns="long long", took_ns="long long", metrics=LoopMetrics)
    cdef _turn(self, long long now_ms)

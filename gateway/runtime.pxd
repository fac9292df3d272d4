import cython


cdef class Clock:
    cdef long long _last_ms

    @cython.locals(now_ms="long long")
    cpdef long long now_ms(self)


cdef class CoarseTimer:
    cdef Clock _clock
    cdef dict _slots
    cdef long long _next_slot
    cdef object _handle
    cdef object _loop

    @cython.locals(slot="long long", filed="long long")
    cpdef watch(self, timed)


cdef class TurnRunner:
    cdef object _loop
    cdef Clock _clock
    cdef object _run_turn
    cdef bint _is_pending
    cdef Py_ssize_t _arrived_bytes

    cpdef schedule(self)

    cpdef arrived(self, Py_ssize_t size)

    cpdef _turn(self)

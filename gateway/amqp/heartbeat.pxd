cdef class Heartbeat:
    cdef public long long interval_ms
    cdef public long long received_ms
    cdef long long _beat_at_ms
    cdef bint _has_sent
    cdef bint _is_paused

    cpdef on_sent(self)

    cpdef next_deadline_ms(self)

import cython


cdef class DoorMetrics:
    cdef public str name
    cdef public long long acknowledged
    cdef public long long messages_in
    cdef public long long messages_out
    cdef public long long redelivered
    cdef public long long bytes_in
    cdef public long long bytes_out
    cdef public long long connections
    cdef public long long connections_total
    cdef public long long channel_changes
    cdef public long long sessions
    cdef public long long publishers_held
    cdef public long long holds
    cdef public dict refused
    cdef public dict dropped
    cdef public dict logins
    cdef public dict dead_letters


@cython.final
cdef class LoopMetrics:
    cdef public long long share_ns_max
    cdef public long long turn_ns_max


cdef class Metrics:
    cdef public dict doors
    cdef public dict bridges
    cdef public object sync
    cdef public object lateness
    cdef public object transactions
    cdef public LoopMetrics loop

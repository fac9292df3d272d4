from core.metrics cimport DoorMetrics
from gateway.amqp.channel cimport Channel


cdef class Confirms:
    cdef object _answers
    cdef object _output
    cdef DoorMetrics _metrics
    cdef list _runs
    cdef dict _safe

    cpdef add(self, long long ticket, Channel channel, long long first, tuple refused=*)

    cpdef hand_in(self)

    cdef _put_refused(self, Channel channel, tuple refused)

    cdef _put_safe(self)

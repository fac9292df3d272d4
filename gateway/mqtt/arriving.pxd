from gateway.mqtt.holding cimport Holding

cdef int _LOGIN
cdef int _OVER


cdef class Arriving(Holding):
    cdef object _proving
    cdef object _limits

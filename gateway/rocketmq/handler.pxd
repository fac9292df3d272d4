from gateway.net.protocol cimport ConnectionHandler, Transport


cdef class RocketmqHandler(ConnectionHandler):
    cdef public dict held
    cdef object _door
    cdef public Transport transport
    cdef public object client
    cdef object _connection
    cdef object _sender
    cdef object _identity
    cdef long long _idle_until_ms
    cdef long long _held_until_ms

    cpdef on_data(self, bytes data, long long now_ms)

    cpdef next_deadline_ms(self)

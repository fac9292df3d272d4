cdef class ConnectionHandler:
    cpdef on_data(self, bytes data, long long now_ms)


cdef class Transport:
    cdef public long long conn_id
    cdef public str end_reason
    cdef public str peer
    cdef public bytes peer_host
    cdef public bint is_writable

    cpdef write(self, data)

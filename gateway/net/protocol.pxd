cdef class ConnectionHandler:
    cpdef bint on_data(self, bytes data, long long now_ms) except -1

    cpdef bint go_on(self, long long now_ms) except -1


cdef class Transport:
    cdef public long long conn_id
    cdef public str end_reason
    cdef public str peer
    cdef public bytes peer_certificate
    cdef public str peer_client
    cdef public bytes peer_host
    cdef public str peer_name
    cdef public str refusal
    cdef public object shared
    cdef public bint is_writable
    cdef public long long since_ms
    cdef public object ways
    cdef public long long bytes_in
    cdef public long long bytes_out

    cpdef write(self, data)

    cpdef bint is_share_over(self) except -1

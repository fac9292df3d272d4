from gateway.net.transport cimport SocketTransport


cdef class LayeredTransport(SocketTransport):
    cdef object _make_layers
    cdef object _stack
    cdef long long _open_until_ms
    cdef bint _is_connected
    cdef bint _is_handler_left
    cdef bint _is_taking
    cdef bint _is_proxied
    cdef object _local_address

    cdef bint _enter(self, str host) except -1

    cdef _begin(self, str host)

    cdef _set_deadline(self)

    cpdef data_received(self, bytes data)

    cdef bint _is_open(self) except -1

    cdef bint _take(self, bytes data, long long now_ms) except -1

    cdef bint _give(self, bytes data, long long now_ms) except -1

    cdef bytes _unwrap(self, object stack, bytes data)

    cdef bint _note_peer(self, object peer) except -1

    cdef _send_said(self, object stack)

    cdef _refuse(self, object error)

    cdef _set_read(self)

    cdef _tell_lost(self, str reason)

    cpdef next_deadline_ms(self)

    cpdef write(self, data)

    cdef _say_end(self)

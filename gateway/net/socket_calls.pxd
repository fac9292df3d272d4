# Inline C form of gateway/net/socket_calls.py.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef extern from "<sys/socket.h>" nogil:
    enum: MSG_DONTWAIT
    enum: MSG_NOSIGNAL
    ssize_t send(int fd, const void *data, size_t size, int flags)


cdef inline Py_ssize_t send_part(int fd, bytes data) noexcept:
    cdef ssize_t sent = send(fd, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), MSG_DONTWAIT | MSG_NOSIGNAL)
    return sent if sent > 0 else 0

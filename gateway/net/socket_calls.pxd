# Inline C form of gateway/net/socket_calls.py.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE

cdef extern from "gateway/net/socket_calls.h" nogil:
    void lmq_acknowledge(int fd) noexcept

cdef extern from "<sys/socket.h>" nogil:
    enum: MSG_DONTWAIT
    enum: MSG_NOSIGNAL
    ssize_t send(int fd, const void *data, size_t size, int flags)


cdef inline Py_ssize_t send_part(int fd, data) except -1:
    cdef const unsigned char[::1] view
    cdef const void *start
    cdef Py_ssize_t size
    cdef ssize_t sent
    if PyBytes_CheckExact(data):
        start = PyBytes_AS_STRING(data)
        size = PyBytes_GET_SIZE(data)
    else:
        view = data
        size = view.shape[0]
        start = &view[0] if size else NULL
    sent = send(fd, start, size, MSG_DONTWAIT | MSG_NOSIGNAL)
    return sent if sent > 0 else 0


cdef inline int acknowledge(int fd) except -1:
    lmq_acknowledge(fd)
    return 0

# Inline C form of gateway/net/streams/masks.py. Bounds are checked once for each call, by hand.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.string cimport memcpy


cdef inline bytes unmask(bytes data, Py_ssize_t start, Py_ssize_t end, bytes key):
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t size = end - start
    cdef uint64_t word
    cdef uint64_t keys
    if start < 0 or size < 0 or end > PyBytes_GET_SIZE(data) or PyBytes_GET_SIZE(key) != 4:
        raise IndexError("outside a buffer")
    cdef bytes plain = PyBytes_FromStringAndSize(NULL, size)
    cdef const char *masked = PyBytes_AS_STRING(data) + start
    cdef const char *mask = PyBytes_AS_STRING(key)
    cdef char *out = PyBytes_AS_STRING(plain)
    memcpy(&keys, mask, 4)
    memcpy(<char *> &keys + 4, mask, 4)
    while at + 8 <= size:
        memcpy(&word, masked + at, 8)
        word ^= keys
        memcpy(out + at, &word, 8)
        at += 8
    while at < size:
        out[at] = masked[at] ^ mask[at & 3]
        at += 1
    return plain

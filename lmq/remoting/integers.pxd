# Inline C forms of lmq/remoting/integers.py. Bounds are checked once for each call, so per-byte checks are off here.
cimport cython
from libc.stdint cimport uint32_t


@cython.boundscheck(False)
cdef inline unsigned int read_u16(const unsigned char[::1] buf, Py_ssize_t pos) except? 0xFFFFFFFF:
    if pos < 0 or pos + 2 > buf.shape[0]:
        raise IndexError("outside a buffer")
    return <unsigned int> buf[pos] << 8 | buf[pos + 1]


@cython.boundscheck(False)
cdef inline uint32_t read_u32(const unsigned char[::1] buf, Py_ssize_t pos) except? 0xFFFFFFFF:
    if pos < 0 or pos + 4 > buf.shape[0]:
        raise IndexError("outside a buffer")
    return (<uint32_t> buf[pos] << 24) | (<uint32_t> buf[pos + 1] << 16) | (<uint32_t> buf[pos + 2] << 8) | buf[pos + 3]

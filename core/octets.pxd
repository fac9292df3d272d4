# Inline C forms of core/octets.py. Bounds are checked once for each call, by hand, so the per-byte checks are off here.
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

cdef extern from "core/crc32.h" nogil:
    uint32_t lmq_crc32(const unsigned char *p, size_t n) noexcept

cdef extern from "core/octets.h" nogil:
    uint16_t lmq_load_u16(const unsigned char *p) noexcept
    uint32_t lmq_load_u32(const unsigned char *p) noexcept
    void lmq_store_u32(unsigned char *p, uint32_t v) noexcept
    int lmq_decimal(unsigned char *out, uint64_t v) noexcept
    void lmq_fetch_ahead(const void *p) noexcept
    int lmq_kinds(const unsigned char *p, size_t n) noexcept


@cython.boundscheck(False)
cdef inline unsigned int read_u16(const unsigned char[::1] buf, Py_ssize_t pos) except? 0xFFFFFFFF:
    if pos < 0 or pos + 2 > buf.shape[0]:
        raise IndexError("outside a buffer")
    return lmq_load_u16(&buf[pos])


@cython.boundscheck(False)
cdef inline uint32_t read_u32(const unsigned char[::1] buf, Py_ssize_t pos) except? 0xFFFFFFFF:
    if pos < 0 or pos + 4 > buf.shape[0]:
        raise IndexError("outside a buffer")
    return lmq_load_u32(&buf[pos])


@cython.boundscheck(False)
cdef inline int32_t read_i32(const unsigned char[::1] buf, Py_ssize_t pos) except? -1:
    if pos < 0 or pos + 4 > buf.shape[0]:
        raise IndexError("outside a buffer")
    return <int32_t> lmq_load_u32(&buf[pos])


@cython.boundscheck(False)
cdef inline int64_t read_i64(const unsigned char[::1] buf, Py_ssize_t pos) except? -1:
    if pos < 0 or pos + 8 > buf.shape[0]:
        raise IndexError("outside a buffer")
    return <int64_t> ((<uint64_t> lmq_load_u32(&buf[pos]) << 32) | lmq_load_u32(&buf[pos + 4]))


@cython.boundscheck(False)
cdef inline bytes read_bytes(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end):
    if pos < 0 or end > buf.shape[0] or pos > end:
        raise IndexError("outside a buffer")
    return PyBytes_FromStringAndSize(<const char *> &buf[pos], end - pos) if end > pos else b""


@cython.boundscheck(False)
cdef inline int write_u8(unsigned char[::1] buf, Py_ssize_t pos, unsigned int value) except -1:
    if pos < 0 or pos + 1 > buf.shape[0]:
        raise IndexError("outside a buffer")
    buf[pos] = <unsigned char> (value & 0xFF)
    return 0


@cython.boundscheck(False)
cdef inline int write_u16(unsigned char[::1] buf, Py_ssize_t pos, unsigned int value) except -1:
    if pos < 0 or pos + 2 > buf.shape[0]:
        raise IndexError("outside a buffer")
    buf[pos] = <unsigned char> ((value >> 8) & 0xFF)
    buf[pos + 1] = <unsigned char> (value & 0xFF)
    return 0


@cython.boundscheck(False)
cdef inline int write_u32(unsigned char[::1] buf, Py_ssize_t pos, int64_t value) except -1:
    if pos < 0 or pos + 4 > buf.shape[0]:
        raise IndexError("outside a buffer")
    lmq_store_u32(&buf[pos], <uint32_t> value)
    return 0


@cython.boundscheck(False)
cdef inline int write_u64(unsigned char[::1] buf, Py_ssize_t pos, int64_t value) except -1:
    if pos < 0 or pos + 8 > buf.shape[0]:
        raise IndexError("outside a buffer")
    lmq_store_u32(&buf[pos], <uint32_t> (<uint64_t> value >> 32))
    lmq_store_u32(&buf[pos + 4], <uint32_t> value)
    return 0


@cython.boundscheck(False)
cdef inline Py_ssize_t write_decimal(unsigned char[::1] buf, Py_ssize_t pos, int64_t value) except -1:
    cdef unsigned char digits[20]
    cdef int size = lmq_decimal(digits, <uint64_t> value)
    if pos < 0 or pos + size > buf.shape[0]:
        raise IndexError("outside a buffer")
    memcpy(&buf[pos], digits, size)
    return pos + size


@cython.boundscheck(False)
cdef inline int copy_bytes(
    unsigned char[::1] dst, Py_ssize_t dst_pos, const unsigned char[::1] src, Py_ssize_t src_pos, Py_ssize_t size
) except -1:
    if size < 0 or dst_pos < 0 or src_pos < 0 or dst_pos + size > dst.shape[0] or src_pos + size > src.shape[0]:
        raise IndexError("outside a buffer")
    if size:
        memcpy(&dst[dst_pos], &src[src_pos], size)
    return 0


@cython.boundscheck(False)
cdef inline Py_ssize_t put_bytes(unsigned char[::1] dst, Py_ssize_t pos, bytes src) except -1:
    cdef Py_ssize_t size = len(src)
    if pos < 0 or pos + size > dst.shape[0]:
        raise IndexError("outside a buffer")
    if size:
        memcpy(&dst[pos], PyBytes_AS_STRING(src), size)
    return pos + size


@cython.boundscheck(False)
cdef inline bint starts_with(const unsigned char[::1] buf, Py_ssize_t pos, bytes prefix) except -1:
    cdef Py_ssize_t size = len(prefix)
    if pos < 0 or pos + size > buf.shape[0]:
        return False
    return size == 0 or memcmp(&buf[pos], PyBytes_AS_STRING(prefix), size) == 0


@cython.boundscheck(False)
cdef inline bint equal_bytes(
    const unsigned char[::1] left, Py_ssize_t left_pos, const unsigned char[::1] right, Py_ssize_t right_pos,
    Py_ssize_t size
) noexcept:
    if left_pos < 0 or right_pos < 0 or left_pos + size > left.shape[0] or right_pos + size > right.shape[0]:
        return False
    return size <= 0 or memcmp(&left[left_pos], &right[right_pos], size) == 0


@cython.boundscheck(False)
cdef inline void fetch_ahead(const unsigned char[::1] buf, Py_ssize_t pos) noexcept:
    if 0 <= pos < buf.shape[0]:
        lmq_fetch_ahead(&buf[pos])


@cython.boundscheck(False)
cdef inline Py_ssize_t find_byte(
    const unsigned char[::1] buf, unsigned int value, Py_ssize_t pos, Py_ssize_t end
) except? -2:
    cdef const unsigned char *found
    if pos < 0 or end > buf.shape[0] or pos > end:
        raise IndexError("outside a buffer")
    if pos == end:
        return -1
    found = <const unsigned char *> memchr(&buf[pos], <int> value, end - pos)
    return -1 if found == NULL else found - &buf[pos] + pos


@cython.boundscheck(False)
cdef inline int kinds_of(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1:
    if pos < 0 or end > buf.shape[0] or pos > end:
        raise IndexError("outside a buffer")
    return lmq_kinds(&buf[pos], <size_t> (end - pos)) if end > pos else 0


@cython.boundscheck(False)
cdef inline uint32_t crc32(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except? 0xFFFFFFFF:
    if pos < 0 or end > buf.shape[0] or pos > end:
        raise IndexError("outside a buffer")
    return lmq_crc32(&buf[pos], <size_t> (end - pos)) if end > pos else lmq_crc32(NULL, 0)

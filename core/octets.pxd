# Inline C forms of core/octets.py. Bounds are checked once for each call, by hand, so the per-byte checks are off here.
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static uint32_t lmq_crc_table[8][256];
    static int lmq_crc_ready = 0;
    static void lmq_crc_init(void) {
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t c = n;
            for (int k = 0; k < 8; k++) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
            lmq_crc_table[0][n] = c;
        }
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t c = lmq_crc_table[0][n];
            for (int k = 1; k < 8; k++) {
                c = lmq_crc_table[0][c & 0xFF] ^ (c >> 8);
                lmq_crc_table[k][n] = c;
            }
        }
        lmq_crc_ready = 1;
    }
    static inline uint32_t lmq_crc_bytes(uint32_t c, const unsigned char *p, Py_ssize_t n) {
        if (!lmq_crc_ready) lmq_crc_init();
        while (n >= 8) {
            uint32_t one = c ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
            uint32_t two = (uint32_t)p[4] | (uint32_t)p[5] << 8 | (uint32_t)p[6] << 16 | (uint32_t)p[7] << 24;
            c = lmq_crc_table[7][one & 0xFF] ^ lmq_crc_table[6][(one >> 8) & 0xFF]
              ^ lmq_crc_table[5][(one >> 16) & 0xFF] ^ lmq_crc_table[4][one >> 24]
              ^ lmq_crc_table[3][two & 0xFF] ^ lmq_crc_table[2][(two >> 8) & 0xFF]
              ^ lmq_crc_table[1][(two >> 16) & 0xFF] ^ lmq_crc_table[0][two >> 24];
            p += 8; n -= 8;
        }
        while (n-- > 0) c = lmq_crc_table[0][(c ^ *p++) & 0xFF] ^ (c >> 8);
        return c;
    }
    #if defined(__x86_64__) && defined(__GNUC__)
    /* Folding by carry-less multiplication (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using
       PCLMULQDQ", Intel 2009): a lane of 16 bytes moves on by d bits when its halves are multiplied by the
       remainders of x^(d+32) and x^(d-32), bit-reflected. Four lanes at once hide the multiplier's latency. */
    #include <immintrin.h>
    #define LMQ_CLMUL __attribute__((target("pclmul,sse4.1")))
    static inline LMQ_CLMUL __m128i lmq_fold(__m128i lane, __m128i by, __m128i onto) {
        __m128i low = _mm_clmulepi64_si128(lane, by, 0x00), high = _mm_clmulepi64_si128(lane, by, 0x11);
        return _mm_xor_si128(_mm_xor_si128(low, high), onto);
    }
    static inline LMQ_CLMUL __m128i lmq_lane(const unsigned char *p, Py_ssize_t k) {
        return _mm_loadu_si128((const __m128i *)p + k);
    }
    /* The running CRC over n bytes, a multiple of 16, at least 64. */
    static LMQ_CLMUL uint32_t lmq_crc_fold(uint32_t c, const unsigned char *p, Py_ssize_t n) {
        const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
        const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
        const __m128i by_8 = _mm_set_epi64x(0, 0x163cd6124);
        const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641); /* x^64 / P, and P */
        const __m128i low_words = _mm_setr_epi32(-1, 0, -1, 0);
        __m128i a = _mm_xor_si128(lmq_lane(p, 0), _mm_cvtsi32_si128((int)c));
        __m128i b = lmq_lane(p, 1), d = lmq_lane(p, 2), e = lmq_lane(p, 3), rest;
        for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
            a = lmq_fold(a, by_64, lmq_lane(p, 0)); b = lmq_fold(b, by_64, lmq_lane(p, 1));
            d = lmq_fold(d, by_64, lmq_lane(p, 2)); e = lmq_fold(e, by_64, lmq_lane(p, 3));
        }
        a = lmq_fold(lmq_fold(lmq_fold(a, by_16, b), by_16, d), by_16, e);
        for (; n >= 16; p += 16, n -= 16) a = lmq_fold(a, by_16, lmq_lane(p, 0));
        a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
        rest = _mm_clmulepi64_si128(_mm_and_si128(a, low_words), by_8, 0x00);
        a = _mm_xor_si128(rest, _mm_srli_si128(a, 4));
        rest = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(a, low_words), barrett, 0x10), low_words);
        return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, _mm_clmulepi64_si128(rest, barrett, 0x00)), 1);
    }
    static inline int lmq_has_clmul(void) {
        static int known = -1;
        if (known < 0) {
            __builtin_cpu_init();
            known = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
        }
        return known;
    }
    #else
    static inline int lmq_has_clmul(void) { return 0; }
    static inline uint32_t lmq_crc_fold(uint32_t c, const unsigned char *p, Py_ssize_t n) {
        return lmq_crc_bytes(c, p, n);
    }
    #endif
    static inline uint32_t lmq_crc32(const unsigned char *p, Py_ssize_t n) {
        uint32_t c = 0xFFFFFFFFu;
        if (n >= 64 && lmq_has_clmul()) {
            Py_ssize_t whole = n & ~(Py_ssize_t)15;
            c = lmq_crc_fold(c, p, whole);
            p += whole; n -= whole;
        }
        return (lmq_crc_bytes(c, p, n) ^ 0xFFFFFFFFu) & 0x7FFFFFFFu;
    }
    static inline uint16_t lmq_load_u16(const unsigned char *p) { return (uint16_t)(((uint32_t)p[0] << 8) | p[1]); }
    static inline uint32_t lmq_load_u32(const unsigned char *p) {
        return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | (uint32_t)p[3];
    }
    static inline void lmq_store_u32(unsigned char *p, uint32_t v) {
        p[0] = (unsigned char)(v >> 24); p[1] = (unsigned char)(v >> 16);
        p[2] = (unsigned char)(v >> 8); p[3] = (unsigned char)v;
    }
    static inline int lmq_decimal(unsigned char *out, uint64_t v) {
        unsigned char tmp[20]; int at = 20;
        while (v > 0xFFFFFFFFu) { tmp[--at] = (unsigned char)('0' + v % 10); v /= 10; }
        uint32_t w = (uint32_t)v; /* most numbers are small, and their divisions cheaper */
        while (w >= 100) {
            uint32_t two = w % 100; w /= 100;
            tmp[--at] = (unsigned char)('0' + two % 10); tmp[--at] = (unsigned char)('0' + two / 10);
        }
        if (w >= 10) { tmp[--at] = (unsigned char)('0' + w % 10); w /= 10; }
        tmp[--at] = (unsigned char)('0' + w);
        memcpy(out, tmp + at, 20 - at);
        return 20 - at;
    }
    """
    uint32_t lmq_crc32(const unsigned char *p, Py_ssize_t n) noexcept nogil
    uint16_t lmq_load_u16(const unsigned char *p) noexcept nogil
    uint32_t lmq_load_u32(const unsigned char *p) noexcept nogil
    void lmq_store_u32(unsigned char *p, uint32_t v) noexcept nogil
    int lmq_decimal(unsigned char *out, uint64_t v) noexcept nogil


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


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define lmq_fetch_ahead(p) __builtin_prefetch(p)
    #else
    #define lmq_fetch_ahead(p) ((void)(p))
    #endif
    """
    void lmq_fetch_ahead(const void *p) noexcept nogil


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
cdef inline uint32_t crc32(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except? 0xFFFFFFFF:
    if pos < 0 or end > buf.shape[0] or pos > end:
        raise IndexError("outside a buffer")
    return lmq_crc32(&buf[pos], end - pos) if end > pos else lmq_crc32(NULL, 0)

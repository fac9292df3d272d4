/* CRC-32 as zlib has it (polynomial 0x04C11DB7, bit-reflected), by what the processor can do. */
#ifndef LMQ_CRC32_H
#define LMQ_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Portable: eight bytes at a time by tables, made at the first use. Callers hold the interpreter's lock. */
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
static inline uint32_t lmq_crc_bytes(uint32_t c, const unsigned char *p, size_t n) {
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
    for (; n > 0; n--) c = lmq_crc_table[0][(c ^ *p++) & 0xFF] ^ (c >> 8);
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
static inline LMQ_CLMUL __m128i lmq_lane(const unsigned char *p, size_t k) {
    return _mm_loadu_si128((const __m128i *)p + k);
}
/* The running CRC over n bytes, a multiple of 16, at least 64. */
static LMQ_CLMUL uint32_t lmq_crc_fold(uint32_t c, const unsigned char *p, size_t n) {
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
static inline uint32_t lmq_crc_fast(uint32_t c, const unsigned char *p, size_t n) {
    size_t whole = n & ~(size_t)15;
    if (n < 64 || !lmq_has_clmul()) return lmq_crc_bytes(c, p, n);
    return lmq_crc_bytes(lmq_crc_fold(c, p, whole), p + whole, n - whole);
}
#elif defined(__aarch64__) && defined(__linux__) && defined(__GNUC__)
/* ARMv8's CRC32X and CRC32B: the same polynomial, eight bytes an instruction. */
#include <arm_acle.h>
#include <string.h>
#include <sys/auxv.h>
#define LMQ_HWCAP_CRC32 (1ul << 7) /* HWCAP_CRC32 of Linux' arm64 <asm/hwcap.h> */
#if defined(__clang__)
#define LMQ_CRC __attribute__((target("crc")))
#else
#define LMQ_CRC __attribute__((target("+crc")))
#endif
static inline LMQ_CRC uint32_t lmq_crc_instructions(uint32_t c, const unsigned char *p, size_t n) {
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        c = __crc32d(c, word);
    }
    for (; n > 0; n--) c = __crc32b(c, *p++);
    return c;
}
static inline int lmq_has_crc32(void) {
    static int known = -1;
    if (known < 0) known = (getauxval(AT_HWCAP) & LMQ_HWCAP_CRC32) != 0;
    return known;
}
static inline uint32_t lmq_crc_fast(uint32_t c, const unsigned char *p, size_t n) {
    return lmq_has_crc32() ? lmq_crc_instructions(c, p, n) : lmq_crc_bytes(c, p, n);
}
#else
static inline uint32_t lmq_crc_fast(uint32_t c, const unsigned char *p, size_t n) { return lmq_crc_bytes(c, p, n); }
#endif

/* RocketMQ's body CRC: zlib's without the top bit, so that it is never negative in Java. */
static inline uint32_t lmq_crc32(const unsigned char *p, size_t n) {
    return (lmq_crc_fast(0xFFFFFFFFu, p, n) ^ 0xFFFFFFFFu) & 0x7FFFFFFFu;
}

#endif

/* The C of core/octets.pxd: big-endian integers and decimal digits. */
#ifndef LMQ_OCTETS_H
#define LMQ_OCTETS_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define lmq_fetch_ahead(p) __builtin_prefetch(p)
#else
#define lmq_fetch_ahead(p) ((void)(p))
#endif

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

#endif

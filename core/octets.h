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
/* Which kinds of letters there are: 1 for a zero, 2 for the separators 1 and 2, 4 for what is not ASCII. */
#define LMQ_EACH(byte) (0x0101010101010101u * (uint64_t)(byte))
#define LMQ_TOP LMQ_EACH(0x80)
static inline int lmq_kinds_of_word(uint64_t w) {
    if (!((w | ((w - LMQ_EACH(3)) & ~w)) & LMQ_TOP)) return 0; /* ASCII, all from 3 on: nearly every word */
    uint64_t one = w ^ LMQ_EACH(1), two = w ^ LMQ_EACH(2);
    uint64_t zero = (w - LMQ_EACH(1)) & ~w;
    uint64_t parts = ((one - LMQ_EACH(1)) & ~one) | ((two - LMQ_EACH(1)) & ~two);
    return (zero & LMQ_TOP ? 1 : 0) | (parts & LMQ_TOP ? 2 : 0) | (w & LMQ_TOP ? 4 : 0);
}
static inline int lmq_kinds(const unsigned char *p, size_t n) {
    uint64_t word = LMQ_EACH(0x20);
    int kinds = 0;
    if (n < 8) { /* a load of a fixed size is one instruction; letters may be looked at twice */
        if (n >= 4) {
            memcpy(&word, p, 4);
            memcpy((unsigned char *)&word + 4, p + n - 4, 4);
        } else if (n > 0) {
            unsigned char few[3] = {p[0], p[n / 2], p[n - 1]};
            memcpy(&word, few, 3);
        }
        return lmq_kinds_of_word(word);
    }
    for (size_t at = 0; at + 8 < n; at += 8) {
        memcpy(&word, p + at, 8);
        kinds |= lmq_kinds_of_word(word);
    }
    memcpy(&word, p + n - 8, 8);
    return kinds | lmq_kinds_of_word(word);
}

#endif

/* Holds every form of the CRC that this machine can run against one bit at a time. */
#include <stdio.h>
#ifdef STAND_IN_FOR_ARM /* what AT_HWCAP says there: the header's part for ARM, whatever this machine is */
#include <string.h>
#include <sys/auxv.h>
#undef __x86_64__
#undef __clang__
#define __aarch64__ 1
#define target(name) unused
#define getauxval(which) ((void)(which), (unsigned long)STAND_IN_FOR_ARM)
#elif defined(STAND_IN_FOR_ANY) /* its part for processors that have nothing */
#undef __x86_64__
#undef __aarch64__
#endif
#include "core/crc32.h"
#include <string.h>

#define LENGTH_MAX 700

static uint32_t by_bit(uint32_t c, const unsigned char *p, size_t n) {
    for (; n > 0; n--) {
        c ^= *p++;
        for (int k = 0; k < 8; k++) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    }
    return c;
}

int main(void) {
    static unsigned char data[LENGTH_MAX + 16];
    uint32_t state = 2463534242u;
    for (size_t k = 0; k < sizeof data; k++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        data[k] = (unsigned char)state;
    }
    for (size_t start = 0; start < 16; start++)
        for (size_t n = 0; n <= LENGTH_MAX; n++) {
            uint32_t c = (uint32_t)(n * 2654435761u) ^ 0xFFFFFFFFu;
            uint32_t wanted = by_bit(c, data + start, n);
            if (lmq_crc_bytes(c, data + start, n) != wanted || lmq_crc_fast(c, data + start, n) != wanted) {
                printf("wrong at start=%zu length=%zu\n", start, n);
                return 1;
            }
        }
    if (lmq_crc32((const unsigned char *)"123456789", 9) != (0xCBF43926u & 0x7FFFFFFFu)) return 2;
#ifdef STAND_IN_FOR_ARM
    puts(stood_in ? "right, by instructions" : "right");
#else
    puts("right");
#endif
    return 0;
}

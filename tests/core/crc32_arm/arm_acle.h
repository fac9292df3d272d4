/* ARM's CRC instructions as any machine can do them, which count how often they are called. */
#include <stdint.h>

static unsigned long stood_in = 0;
static uint32_t __crc32b(uint32_t c, uint8_t byte) {
    stood_in++;
    c ^= byte;
    for (int k = 0; k < 8; k++) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    return c;
}
static uint32_t __crc32d(uint32_t c, uint64_t word) {
    for (int k = 0; k < 8; k++) c = __crc32b(c, (uint8_t)(word >> 8 * k));
    return c;
}

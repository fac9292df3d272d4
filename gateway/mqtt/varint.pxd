# Inline C forms of gateway/mqtt/varint.py: they stand on the path of each delivery.
from core cimport octets


cdef inline int size_of(long long value) noexcept:
    if value < 0x80:
        return 1
    if value < 0x4000:
        return 2
    return 3 if value < 0x200000 else 4


cdef inline Py_ssize_t put(unsigned char[::1] out, Py_ssize_t pos, long long value) except -1:
    while value >= 0x80:
        octets.write_u8(out, pos, <unsigned int> (value & 0x7F | 0x80))
        value >>= 7
        pos += 1
    octets.write_u8(out, pos, <unsigned int> value)
    return pos + 1

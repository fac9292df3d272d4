# Inline C form of gateway/clocks.py.
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, clockid_t, timespec


cdef inline long long read_ns(clockid_t clock) noexcept:
    cdef timespec now
    clock_gettime(clock, &now)
    return <long long>now.tv_sec * 1_000_000_000 + now.tv_nsec


cdef inline long long wall_ns() noexcept:
    return read_ns(CLOCK_REALTIME)


cdef inline long long monotonic_ns() noexcept:
    return read_ns(CLOCK_MONOTONIC)

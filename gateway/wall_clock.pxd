# Inline C form of gateway/wall_clock.py.
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec


cdef inline long long now_ns() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <long long>now.tv_sec * 1_000_000_000 + now.tv_nsec

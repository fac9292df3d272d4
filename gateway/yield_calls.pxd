# Inline C form of gateway/yield_calls.py.
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef extern from "<sched.h>" nogil:
    int sched_yield()


cdef inline void give_up_core() noexcept:
    sched_yield()


cdef inline long long monotonic_ns() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <long long>now.tv_sec * 1_000_000_000 + now.tv_nsec

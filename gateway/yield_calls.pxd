# Inline C form of gateway/yield_calls.py.
cdef extern from "<sched.h>" nogil:
    int sched_yield()


cdef inline void give_up_core() noexcept:
    sched_yield()

from core.lmq.waiters cimport Reader


cdef class Held(Reader):
    cdef public long long deadline_ms

    cpdef resume(self, long long now_ms)

    cpdef forget(self)

import cython


@cython.final
cdef class Hits:
    cdef public long long count


@cython.final
cdef class CacheBudget:
    cdef readonly long long bytes_max
    cdef readonly long long aside_bytes
    cdef readonly long long generation
    cdef readonly dict evicted
    cdef readonly dict made
    cdef readonly dict hits
    cdef long long _half
    cdef long long _young_bytes
    cdef dict _caches
    cdef list _going
    cdef long long _going_count
    cdef long long _due

    cdef bint make_room(self, long long size) except -1

    cdef charge(self, long long size)

    cdef add(self, Cache cache)

    cdef discard(self, Cache cache)

    @cython.locals(cache=Cache, gone=dict)
    cdef _begin_generation(self)

    @cython.locals(count="long long", last=dict)
    cdef _let_go(self, long long size)


@cython.final
cdef class Cache:
    cdef readonly str name
    cdef readonly dict young
    cdef readonly Hits hits
    cdef public long long aside_bytes
    cdef dict _old
    cdef long long _old_count
    cdef long long _young_bytes
    cdef long long _old_bytes
    cdef CacheBudget _budget
    cdef object _measure

    cpdef bint is_empty(self) except -1

    cpdef get(self, key)

    @cython.locals(young=dict, budget=CacheBudget, size="long long")
    cpdef put(self, key, value)

    @cython.locals(size="long long")
    cdef _size_of(self, key, value)

    cpdef drop(self, key)

    cdef dict age(self)

    cpdef bytes_used(self)

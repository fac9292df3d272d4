cdef class Room:
    cdef public long long free_bytes_min
    cdef public long long free_bytes
    cdef public bint is_low
    cdef list _watchers

cdef class Room:
    cdef public long long free_bytes_min
    cdef public long long free_bytes
    cdef public bint is_low
    cdef public bint is_disk_low
    cdef public bint is_memory_low
    cdef list _watchers

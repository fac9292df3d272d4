cimport cython

from core cimport untracked


cdef const unsigned char[::1] _NOTHING
cdef int _FLAG_RETAIN
cdef Py_ssize_t _STEP_DISPATCHES
cdef Py_ssize_t _RETAINED_DISPATCHES


@cython.final
cdef class RefRoom:
    cdef int[::1] _block
    cdef Py_ssize_t _used

    @cython.locals(count=Py_ssize_t, start=Py_ssize_t, k=Py_ssize_t)
    cdef int[::1] put(self, list refs)


@cython.final
cdef class DispatchSet:
    cdef object __weakref__
    cdef public list names
    cdef public int[::1] queue_refs
    cdef public Py_ssize_t count
    cdef public bytes text
    cdef public bint is_interned
    cdef public long long written_at
    cdef public long long again_at
    cdef public long long counted_in

    cdef _put_refs(self, list refs, RefRoom room)


@cython.final
cdef class Route:
    cdef public bytes topic
    cdef public int queue_id
    cdef public int topic_ref
    cdef public bytes prefix
    cdef public DispatchSet dispatch
    cdef public long long checked_at


@cython.final
cdef class PublishBatch:
    cdef public Py_ssize_t capacity
    cdef public Py_ssize_t count
    cdef public Py_ssize_t appended
    cdef public long long ticket
    cdef public Py_ssize_t retained_count
    cdef public const unsigned char[::1] buf
    cdef public const unsigned char[::1] extra
    cdef public bytes origin
    cdef public bytes born_host
    cdef public list topics
    cdef public list routes
    cdef public list waits
    cdef public bint is_whole
    cdef public int[::1] route_index
    cdef public int[::1] body_start
    cdef public int[::1] body_end
    cdef public int[::1] extra_start
    cdef public int[::1] extra_end
    cdef public int[::1] flag
    cdef public int[::1] sys_flag
    cdef public int[::1] reconsume_times
    cdef public long long[::1] born_ms
    cdef public long long[::1] tag
    cdef public long long[::1] physical_offset
    cdef public long long[::1] queue_offset

    @cython.locals(widest=Py_ssize_t, left=Py_ssize_t, route=Route, i=Py_ssize_t)
    cpdef Py_ssize_t find_step(self) except -1

    cpdef clear(self)


@cython.final
cdef class StoredBatch:
    cdef public Py_ssize_t capacity
    cdef public Py_ssize_t count
    cdef public long long next_offset
    cdef public long long reader_number
    cdef public Py_ssize_t sound_rows
    cdef public long long fill_number
    cdef public const unsigned char[::1] buf
    cdef public int[::1] record_start
    cdef public int[::1] record_end
    cdef public int[::1] topic_start
    cdef public int[::1] topic_end
    cdef public int[::1] body_start
    cdef public int[::1] body_end
    cdef public int[::1] properties_start
    cdef public int[::1] properties_end
    cdef public int[::1] flag
    cdef public int[::1] sys_flag
    cdef public int[::1] attempt
    cdef public long long[::1] queue_offset
    cdef public long long[::1] physical_offset
    cdef public long long[::1] born_ms
    cdef public long long[::1] store_ms

    cpdef clear(self)

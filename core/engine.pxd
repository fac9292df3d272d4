from core.message cimport PublishBatch, StoredBatch


cdef class Engine:
    cdef readonly object room
    cdef readonly long long message_bytes_max
    cdef public object request_turn

    cpdef long long max_offset(self, int queue_ref) except -1

    cpdef Py_ssize_t next_offsets(self, Py_ssize_t start, long long[::1] out) except -1

    cpdef Py_ssize_t first_offsets(self, Py_ssize_t start, long long[::1] out) except -1

    cpdef append_batch(self, PublishBatch batch, long long now_ms)

    cpdef Py_ssize_t read(
        self, int queue_ref, long long offset, StoredBatch into, Py_ssize_t count_max, Py_ssize_t bytes_max
    ) except -1

    cpdef Py_ssize_t read_offsets(
        self, int queue_ref, long long[::1] offsets, Py_ssize_t count, StoredBatch into
    ) except -1

    cpdef Py_ssize_t take_grown(self, list into) except -1

    cpdef bint step(self, long long now_ms) except -1

    cpdef when_stored(self, long long ticket, then)

    cpdef when_durable(self, then)

    cpdef when_kept(self, then)

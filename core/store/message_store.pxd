import cython

from core.message cimport PublishBatch, StoredBatch
from core.store.commit_log cimport CommitLog
from core.store.head_index cimport HeadIndex
from core.store.queue_index cimport QueueIndex
from core.store.queue_reader cimport QueueReader


cdef class MessageStore:
    cdef readonly object data_dir
    cdef readonly object settings
    cdef readonly object report
    cdef object _lock
    cdef object _segments
    cdef object _names
    cdef QueueIndex _index
    cdef readonly object keys
    cdef HeadIndex _head
    cdef readonly object definitions
    cdef object _sets
    cdef object _side_files
    cdef object _puncher
    cdef readonly object retention
    cdef bint _is_open
    cdef readonly object pages_ahead
    cdef readonly CommitLog _log
    cdef QueueReader _reader
    cdef object _scan
    cdef object _confirmed
    cdef object _flusher

    cpdef long long max_offset(self, int queue_ref) except -1

    cpdef Py_ssize_t first_offsets(self, Py_ssize_t start, long long[::1] out) except -1

    cpdef long long append_batch(self, PublishBatch batch, long long now_ms) except -1

    cdef int _check_open(self) except -1

    cpdef bint touch_ahead(self) except -1

    cpdef bint touch_pages(self) except -1

    cpdef Py_ssize_t read(
        self, int queue_ref, long long offset, StoredBatch into, Py_ssize_t count_max, Py_ssize_t bytes_max
    ) except -1

    cpdef Py_ssize_t take_grown(self, list into) except -1

    cpdef bint needs_commit(self) except -1

    @cython.locals(flushed_until="long long")
    cpdef bint is_flushed(self, long long until) except -1

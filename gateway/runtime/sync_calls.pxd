# The C form of gateway/runtime/sync_calls.py.
from libc.stdint cimport int64_t

cdef extern from "gateway/runtime/sync_calls.h" nogil:
    int lmq_sync_files(int asked_fd, int done_fd, int64_t *work) except -1
    void lmq_sync_beside(int64_t *work)


cdef inline bint sync_files(int asked_fd, int done_fd, int64_t[::1] work) except -1:
    if work.shape[0] < 42:
        raise ValueError("too little room for what is told")
    with nogil:
        return lmq_sync_files(asked_fd, done_fd, &work[0])


cdef inline int sync_beside(int64_t[::1] work) except -1:
    if work.shape[0] < 42:
        raise ValueError("too little room for what is told")
    with nogil:
        lmq_sync_beside(&work[0])
    return 0

from gateway.amqp.codec cimport PublishCutter
from gateway.amqp.unacked cimport UnackedRing


cdef class Content:
    cdef public bytes raw
    cdef public int bits
    cdef public bytes block
    cdef public bytearray body
    cdef public object body_size


cdef class Incomplete:
    cdef public long long bytes_max
    cdef public long long size


cdef class Channel:
    cdef public int number
    cdef public Incomplete incomplete
    cdef public bint is_closing
    cdef public Content content
    cdef public bint is_confirming
    cdef public str reply_name
    cdef public object transaction
    cdef public long long published
    cdef public long long confirmed
    cdef public UnackedRing unacked
    cdef public list ack_marks
    cdef public object again
    cdef public bytes again_frame
    cdef public long long prefetch_count
    cdef public long long prefetch_global
    cdef public str last_queue
    cdef public list slots
    cdef public object free_slots
    cdef public Py_ssize_t get_slot
    cdef public dict starved
    cdef public dict consumers

    cpdef long long count_published(self, Py_ssize_t count) except -1

    cpdef drop_content(self)

    cpdef finish_content(self, PublishCutter cutter, bytes user)

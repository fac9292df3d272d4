import cython

from core.message cimport PublishBatch
from gateway.rocketmq.codec cimport SendHeader


cdef class SendTarget:
    cdef public bytes topic
    cdef public int queue_id
    cdef public bytes dispatch
    cdef public bytes space_topic
    cdef public bytes default_topic
    cdef public int default_queues
    cdef public int refusal
    cdef public int delay_level
    cdef public int timer_queue
    cdef public int reconsumes
    cdef public int reconsumes_max
    cdef public int answer_queue


cdef class UniqCounter:
    cdef public unsigned int value


cdef class RunPool:
    cdef public int body_bytes_max
    cdef int _properties_bytes_max
    cdef bytes _cluster
    cdef UniqCounter _uniq_counter
    cdef SendRun _free

    @cython.locals(run=SendRun)
    cpdef SendRun show(self)

    @cython.locals(run=SendRun)
    cpdef SendRun take(self)

    cpdef give_back(self, SendRun run)


cdef class SendRun:
    cdef public RunPool pool
    cdef public Py_ssize_t holders
    cdef public PublishBatch batch
    cdef public Py_ssize_t count
    cdef public int body_bytes_max
    cdef public int properties_bytes_max
    cdef public const unsigned char[::1] cluster
    cdef public const unsigned char[::1] origin
    cdef public const unsigned char[::1] uniq_prefix
    cdef public UniqCounter uniq_counter
    cdef public list targets
    cdef public dict by_key
    cdef public SendHeader header
    cdef public int[::1] header_type
    cdef public int[::1] is_one_way
    cdef public int[::1] uniq_start
    cdef public int[::1] uniq_end
    cdef public unsigned char[::1] extra
    cdef public Py_ssize_t extra_used
    cdef public unsigned char[::1] scratch
    cdef public int kind
    cdef public bytes dispatch
    cdef public bytes space_topic
    cdef public int delay_level
    cdef public bint is_request
    cdef public int refusal
    cdef public bint is_half
    cdef public bint has_group
    cdef public Py_ssize_t last_start
    cdef public Py_ssize_t last_end
    cdef public int last_queue_id
    cdef public int last_index

    @cython.locals(pool=RunPool)
    cpdef release(self)

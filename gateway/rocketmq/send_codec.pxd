import cython

from core cimport octets
from core.message cimport PublishBatch
from gateway.rocketmq cimport codec, property_kinds
from gateway.rocketmq.codec cimport SendHeader
from lmq.remoting.frames cimport Frames
from gateway.rocketmq.send_run cimport SendRun, SendTarget, UniqCounter

cdef long long _NO_INTEGER
cdef int _SEND
cdef int _SEND_V2
cdef int _ONE_WAY
cdef Py_ssize_t _UNIQ_PREFIX_BYTES
cdef Py_ssize_t _GROWTH_BYTES
cdef int _TIMED
cdef int _HALF
cdef int _REFUSED_DELAY
cdef int _REFUSED_HALF
cdef int _REFUSED_HALF_LATER
cdef int _REFUSED_NO_GROUP
cdef int _REFUSED_TEXT
cdef int _REFUSED_PROPERTIES
cdef int _REFUSED_BODY
cdef int _PREPARED
cdef int _ENDED
cdef Py_ssize_t _TARGETS_MAX
cdef long long _LEVEL_MAX
cdef int _KEPT_BITS
cdef int _TOPIC
cdef int _DEFAULT_TOPIC
cdef int _DEFAULT_QUEUES
cdef int _QUEUE_ID
cdef int _SYS_FLAG
cdef int _BORN_MS
cdef int _FLAG
cdef int _PROPERTIES
cdef int _RECONSUMES
cdef int _RECONSUMES_MAX
cdef int _BATCH
cdef int _DROP
cdef int _IS_DISPATCH
cdef int _IS_UNIQ
cdef int _IS_SPACE_TOPIC
cdef int _IS_DELAY
cdef int _IS_TIMER
cdef int _IS_TRAN
cdef int _IS_REQUEST
cdef int _IS_GROUP
cdef const unsigned char[::1] _UNIQ_NAME
cdef const unsigned char[::1] _TRANSACTION_NAME
cdef bytes _NO_TOPIC
cdef bytes _RETRY_PREFIX


@cython.locals(buf="const unsigned char[::1]", header=SendHeader, i=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t)
cpdef Py_ssize_t read_sends(Frames frames, Py_ssize_t first, SendRun run) except -1

@cython.locals(wanted=Py_ssize_t, grown="unsigned char[::1]")
cdef int _make_room(SendRun run, Py_ssize_t header_bytes) except -1

@cython.locals(
    i=Py_ssize_t, batch=PublishBatch, header=SendHeader, queue_id="long long", queues="long long",
    sys_flag="long long", flag="long long", reconsumes="long long", born_ms="long long",
)
cdef bint _add_message(
    const unsigned char[::1] buf, Py_ssize_t body_start, Py_ssize_t body_end, SendRun run
) except *

@cython.locals(start=Py_ssize_t, value="long long")
cdef long long _number(const unsigned char[::1] buf, SendHeader header, int field, long long otherwise) except? -3

@cython.locals(start=Py_ssize_t)
cdef long long _number_64(const unsigned char[::1] buf, SendHeader header, int field) except? -3

@cython.locals(field=int, start=Py_ssize_t)
cdef bint _has_known_texts(const unsigned char[::1] buf, SendHeader header) except *

@cython.locals(header=SendHeader, start=Py_ssize_t, end=Py_ssize_t, scratch="unsigned char[::1]")
cdef bint _take_properties(const unsigned char[::1] buf, SendRun run, Py_ssize_t i) except *

@cython.locals(extra="unsigned char[::1]", used=Py_ssize_t, close=Py_ssize_t, name_end=Py_ssize_t)
cdef int _copy_properties(
    const unsigned char[::1] text, Py_ssize_t pos, Py_ssize_t end, SendRun run, Py_ssize_t i
) except -1

@cython.locals(kind=int, start=Py_ssize_t, level="long long")
cdef bint _keep(
    const unsigned char[::1] text, Py_ssize_t pos, Py_ssize_t name_end, Py_ssize_t close, SendRun run
) except *

cdef int _note_half(SendRun run, long long sys_flag, long long reconsumes) except -1

@cython.locals(text=bytes)
cdef bint _is_text(const unsigned char[::1] buf, Py_ssize_t start, Py_ssize_t end) except *

@cython.locals(extra="unsigned char[::1]", used=Py_ssize_t, size=Py_ssize_t)
cdef int _finish_properties(SendRun run, Py_ssize_t i) except -1

@cython.locals(shift=int, digit="unsigned int", counter=UniqCounter)
cdef Py_ssize_t _write_uniq(SendRun run, unsigned char[::1] extra, Py_ssize_t used) except -1

@cython.locals(
    header=SendHeader, start=Py_ssize_t, end=Py_ssize_t, topic=bytes, key=tuple, index=int, plain=bint,
    default_topic=bytes, is_retry=bint, reconsumes_max=int, target=SendTarget,
)
cdef int _find_target(
    const unsigned char[::1] buf, SendRun run, int queue_id, int queues, int reconsumes
) except -1

import cython

from core cimport octets
from core.message cimport PublishBatch, Route
from gateway.rocketmq.recall_handle cimport Handles
from gateway.rocketmq.send_run cimport SendRun, SendTarget

cdef unsigned int _BINARY
cdef unsigned int _LANGUAGE_JAVA
cdef unsigned int _VERSION
cdef Py_ssize_t _ANSWER_BYTES
cdef Py_ssize_t _BINARY_START_BYTES
cdef const unsigned char[::1] _HEX
cdef const unsigned char[::1] _ESCAPE
cdef const unsigned char[::1] _START
cdef const unsigned char[::1] _HANDLE
cdef const unsigned char[::1] _NEXT
cdef const unsigned char[::1] _QUEUE_ID
cdef const unsigned char[::1] _MSG_ID
cdef const unsigned char[::1] _OFFSET
cdef const unsigned char[::1] _TRANSACTION_ID
cdef const unsigned char[::1] _OPAQUE
cdef const unsigned char[::1] _END
cdef const unsigned char[::1] _BINARY_FIXED
cdef const unsigned char[::1] _BINARY_QUEUE_ID
cdef const unsigned char[::1] _BINARY_MSG_ID
cdef const unsigned char[::1] _BINARY_OFFSET
cdef const unsigned char[::1] _BINARY_TRANSACTION_ID
cdef const unsigned char[::1] _BINARY_HANDLE


@cython.locals(
    batch=PublishBatch, size=Py_ssize_t, i=Py_ssize_t, out=bytearray, view="unsigned char[::1]",
    host="const unsigned char[::1]", pos=Py_ssize_t, start=Py_ssize_t, header_type="unsigned int",
)
cpdef bytes encode_send_answers(
    SendRun run, bytes host_hex, Py_ssize_t first, Py_ssize_t end, Handles handles=*
)

@cython.locals(index=int, target=SendTarget, route=Route)
cdef int _queue_id_of(SendRun run, Py_ssize_t i) except? -1

@cython.locals(batch=PublishBatch)
cdef Py_ssize_t _write_json(
    unsigned char[::1] out, Py_ssize_t pos, SendRun run, Py_ssize_t i, const unsigned char[::1] host,
    Handles handles
) except -1

@cython.locals(batch=PublishBatch, start=Py_ssize_t, size=Py_ssize_t)
cdef Py_ssize_t _write_binary(
    unsigned char[::1] out, Py_ssize_t pos, SendRun run, Py_ssize_t i, const unsigned char[::1] host,
    Handles handles
) except -1

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _put(unsigned char[::1] out, Py_ssize_t pos, const unsigned char[::1] piece) except -1

@cython.locals(end=Py_ssize_t)
cdef Py_ssize_t _write_sized_decimal(unsigned char[::1] out, Py_ssize_t pos, long long value) except -1

cdef Py_ssize_t _write_integer(unsigned char[::1] out, Py_ssize_t pos, long long value) except -1

@cython.locals(shift=int)
cdef Py_ssize_t _write_hex(unsigned char[::1] out, Py_ssize_t pos, long long value) except -1

@cython.locals(byte="unsigned char")
cdef Py_ssize_t _write_escaped(
    unsigned char[::1] out, Py_ssize_t pos, const unsigned char[::1] text, Py_ssize_t at, Py_ssize_t end
) except -1

@cython.locals(batch=PublishBatch, total=Py_ssize_t, i=Py_ssize_t)
cpdef Py_ssize_t count_stored(SendRun run, Py_ssize_t first, Py_ssize_t end) except -1

@cython.locals(batch=PublishBatch, total=Py_ssize_t, i=Py_ssize_t)
cpdef Py_ssize_t sum_stored(SendRun run, Py_ssize_t first, Py_ssize_t end) except -1

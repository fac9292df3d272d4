import cython

from gateway.rocketmq.send_codec cimport read_sends
from gateway.rocketmq.send_run cimport RunPool, SendRun
from lmq.remoting.commands cimport Command, encode_command
from lmq.remoting.frames cimport FrameInput, Frames


cdef Py_ssize_t _PROVEN_MAX
cdef int _NEW
cdef int _LOGIN
cdef int _OPEN


cdef class FramePool:
    cdef Py_ssize_t _capacity
    cdef Frames _free

    @cython.locals(free=Frames)
    cpdef Frames take(self)

    cpdef give_back(self, Frames frames)


cdef class Limits:
    cdef public Py_ssize_t frame_bytes_max
    cdef public long long idle_timeout_ms


@cython.final
cdef class Connection:
    cdef public bytes origin
    cdef FramePool _frame_pool
    cdef RunPool _runs
    cdef Limits _limits
    cdef object _uniq
    cdef bytes _born_host
    cdef Frames _frames
    cdef FrameInput _input
    cdef Py_ssize_t _next
    cdef Py_ssize_t _at
    cdef long long _now_ms
    cdef bytes _uniq_prefix
    cdef long long _idle_until_ms
    cdef readonly int state
    cdef bytes _secret
    cdef Py_ssize_t _proven
    cdef Py_ssize_t _refused
    cdef bytes _late
    cdef list _out

    cpdef receive_data(self, bytes data, long long now_ms)

    cpdef take_up(self, long long now_ms)

    cpdef handle_timer(self, long long now_ms)

    cpdef events(self)

    @cython.locals(frames=Frames, late=bytes)
    cdef bint _has_frames(self) except -1

    @cython.locals(frames=Frames, end=Py_ssize_t, at=Py_ssize_t, request=Command)
    cdef bint _prove(self, Py_ssize_t i) except -1

    @cython.locals(frames=Frames, request=Command)
    cdef _ask(self, Py_ssize_t i, step)

    cpdef begin(self, SendRun run, buf)

    cpdef unread(self, SendRun run)

    @cython.locals(data=bytes)
    cpdef bytes data_to_send(self)

    cpdef next_deadline_ms(self)

    cpdef accept(self, bytes secret=*)

    cpdef refuse(self)

    cpdef stop(self)

    cpdef answer(self, Command request, Command response)

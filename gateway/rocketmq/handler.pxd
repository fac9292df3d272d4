import cython

from gateway.net.protocol cimport ConnectionHandler, Transport
from gateway.rocketmq.connection cimport Connection
from gateway.rocketmq.pull cimport PullService
from gateway.rocketmq.send_run cimport SendRun
from lmq.remoting.commands cimport Command


cdef class RocketmqHandler(ConnectionHandler):
    cdef readonly object held
    cdef object _door
    cdef public Transport transport
    cdef public object client
    cdef Connection _connection
    cdef object _sender
    cdef public object identity
    cdef readonly object own_rates
    cdef readonly object own_out_rates
    cdef object _pace
    cdef object _denials
    cdef object _attempt
    cdef bint _has_ended
    cdef str _refused_user
    cdef object _beat

    cpdef bint on_data(self, bytes data, long long now_ms) except -1

    cpdef bint go_on(self, long long now_ms) except -1

    @cython.locals(has_more=bint, at=Transport)
    cdef bint _work(self, bytes data, long long now_ms) except -1

    @cython.locals(connection=Connection, transport=Transport, is_beating=bint)
    cdef bint _act(self, long long now_ms) except -1

    cpdef next_deadline_ms(self)

    @cython.locals(count=Py_ssize_t)
    cdef _store(self, SendRun run, long long now_ms)

    cdef _handle(self, Command request, long long now_ms)

    @cython.locals(code=int, pulls=PullService)
    cdef Command _ask(self, Command request, long long now_ms)

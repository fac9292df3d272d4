import cython

from core.message cimport PublishBatch, Route


cdef Py_ssize_t _UNSEEN_MAX

cdef class Flows


@cython.final
cdef class Flow:
    cdef public long long published_in
    cdef public long long published_out
    cdef public double rate_in
    cdef public double rate_out
    cdef public Flow whole
    cdef public bint is_moving
    cdef long long _seen_in
    cdef long long _seen_out

    cpdef look(self, double passed_s)


@cython.final
cdef class Outflow:
    cdef public long long delivered
    cdef public long long delivered_no_ack
    cdef public long long got
    cdef public long long got_no_ack
    cdef public long long got_nothing
    cdef public long long redelivered
    cdef public long long acked
    cdef public bint is_moving
    cdef readonly tuple rates
    cdef tuple _seen
    cdef Flows _flows

    cpdef tuple counts(self)

    cpdef add_delivered(self, Py_ssize_t count, bint no_ack)

    cpdef add_got(self, bint no_ack, bint is_again)

    cpdef add_got_nothing(self)

    cpdef add_acked(self, Py_ssize_t count)

    cpdef bint has_moved(self) except? True

    @cython.locals(counts=tuple)
    cpdef look(self, double passed_s)


@cython.final
cdef class Flows:
    cdef readonly Flow topics
    cdef readonly long long changes
    cdef list _moving
    cdef list _taken
    cdef bint _is_seen

    cpdef add(self, Flow flow, Py_ssize_t messages, Py_ssize_t copies)

    @cython.locals(routes=list, route=Route, count=Py_ssize_t, messages=Py_ssize_t, copies=Py_ssize_t, i=Py_ssize_t)
    cpdef add_topics(self, PublishBatch batch)

    @cython.locals(
        routes=list, flow=Flow, last=Flow, route=Route, count=Py_ssize_t, messages=Py_ssize_t, copies=Py_ssize_t,
        at=Py_ssize_t, i=Py_ssize_t,
    )
    cpdef add_batch(self, PublishBatch batch, list flows)

    cpdef watch(self, Outflow outflow)

    @cython.locals(flow=Flow, outflow=Outflow)
    cpdef look(self, double passed_s)

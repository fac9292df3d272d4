import cython

from core.message cimport PublishBatch, Route


cdef Py_ssize_t _UNSEEN_MAX


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
cdef class Flows:
    cdef readonly Flow topics
    cdef readonly long long changes
    cdef list _moving
    cdef bint _is_seen

    cpdef add(self, Flow flow, Py_ssize_t messages, Py_ssize_t copies)

    @cython.locals(routes=list, route=Route, count=Py_ssize_t, messages=Py_ssize_t, copies=Py_ssize_t, i=Py_ssize_t)
    cpdef add_topics(self, PublishBatch batch)

    @cython.locals(
        routes=list, flow=Flow, last=Flow, route=Route, count=Py_ssize_t, messages=Py_ssize_t, copies=Py_ssize_t,
        at=Py_ssize_t, i=Py_ssize_t,
    )
    cpdef add_batch(self, PublishBatch batch, list flows)

    @cython.locals(flow=Flow)
    cpdef look(self, double passed_s)

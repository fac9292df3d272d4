import cython

from gateway.mqtt.columns cimport RunColumns


@cython.final
cdef class RunPool:
    cdef Py_ssize_t _capacity
    cdef RunColumns _free

    @cython.locals(free=RunColumns)
    cpdef RunColumns show(self)

    @cython.locals(free=RunColumns)
    cpdef RunColumns take(self)

    cpdef give_back(self, RunColumns columns)


@cython.final
@cython.freelist(8)
cdef class PublishRun:
    cdef public RunColumns columns
    cdef public list denied
    cdef public RunPool pool

    @cython.locals(pool=RunPool)
    cpdef release(self)


@cython.final
@cython.freelist(8)
cdef class AckRun:
    cdef public RunColumns columns
    cdef public RunPool pool

    @cython.locals(pool=RunPool)
    cpdef release(self)


@cython.final
cdef class PingRun:
    cdef readonly Py_ssize_t count


@cython.locals(run=PublishRun)
cpdef PublishRun make_publish_run(RunPool pool)


@cython.locals(run=AckRun)
cpdef AckRun make_ack_run(RunPool pool)

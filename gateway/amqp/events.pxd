import cython

from core.message cimport PublishBatch
from gateway.amqp.channel cimport Channel
from gateway.amqp.codec cimport PublishCutter


@cython.final
cdef class CutterPool:
    cdef Py_ssize_t _capacity
    cdef PublishCutter _free

    @cython.locals(free=PublishCutter)
    cpdef PublishCutter show(self)

    @cython.locals(free=PublishCutter)
    cpdef PublishCutter take(self)

    cpdef give_back(self, PublishCutter cutter)


@cython.final
@cython.freelist(8)
cdef class PublishRun:
    cdef public Channel channel
    cdef public PublishCutter cutter
    cdef public CutterPool pool
    cdef public PublishBatch batch
    cdef public Py_ssize_t count
    cdef public Py_ssize_t mandatory_count
    cdef public Py_ssize_t body_bytes
    cdef public long long first_number
    cdef public dict copies

    @cython.locals(pool=CutterPool)
    cpdef release(self)


@cython.locals(run=PublishRun, cutter=PublishCutter, batch=PublishBatch)
cpdef PublishRun make_publish_run(CutterPool pool, Channel channel)


cdef class SettleRun:
    cdef readonly Channel channel

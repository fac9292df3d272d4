import cython

from core cimport untracked
from core.broker cimport Broker
from core.cache_budget cimport Cache
from core.flows cimport Flow, Flows
from core.lmq.router cimport Router
from core.message cimport PublishBatch, Route
from core.metrics cimport DoorMetrics
from gateway.amqp.events cimport PublishRun
from gateway.amqp.output cimport ConnectionOutput
from gateway.net.protocol cimport Transport

cdef int _MANDATORY


@cython.final
cdef class Target:
    cdef public bytes topic
    cdef public Route route
    cdef public object error
    cdef public bint asks_headers
    cdef public object waits
    cdef public Flow flow


cdef class Publisher:
    cdef Broker _broker
    cdef object _vhost
    cdef object _identity
    cdef DoorMetrics _metrics
    cdef Cache _targets
    cdef long long _version
    cdef long long _may_version
    cdef long long _now_ms
    cdef Flows _flows
    cdef list _passed

    @cython.locals(batch=PublishBatch, step=Py_ssize_t, answer=bytes)
    cpdef publish(self, PublishRun run, ConnectionOutput output, Transport transport, now_ms)

    @cython.locals(
        target=Target, passed=list, raw=bytes, i=Py_ssize_t, version="long long", may_version="long long",
        router=Router, made_count="long long"
    )
    cdef object _resolve(self, PublishBatch batch, dict copies, Transport transport)

    @cython.locals(batch=PublishBatch, lost=set, strays=set, route=Route, i=Py_ssize_t, index=int, dropped=Py_ssize_t)
    cdef bytes _return_unroutable(self, PublishRun run, Py_ssize_t payload_max, now_ms)

    @cython.locals(batch=PublishBatch, count=Py_ssize_t)
    cdef bytes _append(self, PublishRun run, now_ms)


@cython.locals(size=Py_ssize_t, i=Py_ssize_t)
cpdef Py_ssize_t body_bytes(PublishBatch batch) except -1

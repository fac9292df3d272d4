import cython

from core.broker cimport Broker
from core.cache_budget cimport Cache
from core.lmq.router cimport Router
from core.message cimport PublishBatch, Route
from core.metrics cimport DoorMetrics
from gateway.auth.permissions cimport Permissions
from gateway.mqtt.codec cimport RunColumns, encode_pubacks
from gateway.mqtt.events cimport PublishRun
from gateway.net.protocol cimport Transport


@cython.final
cdef class Publishing:
    cdef Broker _broker
    cdef DoorMetrics _metrics
    cdef readonly Cache _checked
    cdef bytes _last_topic
    cdef Route _last_route
    cdef long long _last_generation
    cdef PublishBatch _will_batch

    @cython.locals(columns=RunColumns, batch=PublishBatch, step=Py_ssize_t)
    cpdef bytes publish_run(self, PublishRun run, bytes origin, Transport transport, Permissions may, long long now_ms)

    @cython.locals(batch=PublishBatch, routes=list, topic=bytes, router=Router, made_count="long long")
    cdef _route(self, PublishRun run, Permissions may, Transport transport)

    @cython.locals(generation="long long")
    cdef Route _route_to(self, bytes topic)

    cpdef _check(self, bytes topic)

    @cython.locals(batch=PublishBatch)
    cpdef publish_will(self, stored, long long now_ms)


@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _first_of(PublishBatch batch, Py_ssize_t topic_index) except -1


@cython.locals(batch=PublishBatch, i=Py_ssize_t, retained_count=Py_ssize_t, body_bytes=Py_ssize_t)
cdef void _cut_batch(RunColumns columns, Py_ssize_t count) except *

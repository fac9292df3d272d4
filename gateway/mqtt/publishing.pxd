import cython

from core.broker cimport Broker
from core.cache_budget cimport Cache
from core.flows cimport Flows
from core.lmq.router cimport Router
from core.message cimport PublishBatch, Route
from core.metrics cimport DoorMetrics
from gateway.auth.permissions cimport Permissions
from gateway.mqtt.columns cimport RunColumns, encode_acks, encode_id_packets
from gateway.mqtt.events cimport PublishRun
from gateway.mqtt.session cimport Session
from gateway.net.protocol cimport Transport

cdef int _LEVEL_5
cdef int _EXACT
cdef bytes _DELAYED_PREFIX
cdef int _QOS_MASK
cdef int _NOT_AUTHORIZED
cdef int _UNHEARD
cdef int _QUOTA_EXCEEDED
cdef int _NOT_FOUND
cdef int _PUBCOMP_FIRST


@cython.final
cdef class Publishing:
    cdef public object rewriting
    cdef readonly object delayed
    cdef bint _is_delaying
    cdef public long long retained_count_max
    cdef public long long retained_body_bytes_max
    cdef Broker _broker
    cdef object _exact
    cdef DoorMetrics _metrics
    cdef readonly Cache _checked
    cdef bytes _last_topic
    cdef Route _last_route
    cdef long long _last_generation
    cdef PublishBatch _will_batch
    cdef Flows _flows

    @cython.locals(columns=RunColumns, batch=PublishBatch, step=Py_ssize_t, i=Py_ssize_t)
    cpdef bytes publish_run(
        self, PublishRun run, bytes origin, Transport transport, Session session, Permissions may, long long now_ms
    )

    @cython.locals(columns=RunColumns, batch=PublishBatch, taken=set, i=Py_ssize_t)
    cpdef bytes refuse_run(self, PublishRun run, Session session)

    @cython.locals(
        batch=PublishBatch, fresh=set, nowhere=Py_ssize_t, i=Py_ssize_t, length=Py_ssize_t, topic=bytes, is_new=bint,
        is_over=bint,
    )
    cdef _refuse_retained(self, RunColumns columns, Session session)

    @cython.locals(taken=set, released=list, i=Py_ssize_t, packet_id=int)
    cpdef bytes release_run(self, RunColumns columns, Session session)

    @cython.locals(taken=set, fresh=list, seen=set, rows=list, nowhere=Py_ssize_t, i=Py_ssize_t, packet_id=int)
    cdef _publish_exact(self, PublishBatch batch, Session session, long long now_ms)

    @cython.locals(
        batch=PublishBatch, routes=list, rewrites=bint, k=Py_ssize_t, sent_to=bytes, topic=bytes, router=Router,
        made_count="long long", later_s="long long",
    )
    cdef _route(self, PublishRun run, Permissions may, Transport transport, Session session, long long now_ms)

    cdef Route _delay(self, bytes topic, long long later_s, long long now_ms)

    @cython.locals(generation="long long")
    cdef Route _route_to(self, bytes topic)

    cpdef _check(self, bytes topic)

    @cython.locals(batch=PublishBatch)
    cpdef publish_will(self, stored, long long now_ms)


@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _first_of(PublishBatch batch, Py_ssize_t topic_index) except -1


@cython.locals(batch=PublishBatch, i=Py_ssize_t, retained_count=Py_ssize_t, body_bytes=Py_ssize_t)
cdef void _cut_batch(RunColumns columns, Py_ssize_t count) except *


@cython.locals(batch=PublishBatch, i=Py_ssize_t)
cdef _note_codes(RunColumns columns)


@cython.locals(batch=PublishBatch, route=Route, is_unheard=bint, k=Py_ssize_t, i=Py_ssize_t)
cdef void _note_unheard(RunColumns columns, bytes parent_topic) except *

import cython

from core.broker cimport Broker
from core.message cimport StoredBatch
from core.metrics cimport DoorMetrics
from gateway.mqtt.inflight cimport InflightWindow
from gateway.mqtt.publish_encoder cimport PublishEncoder


cdef class FilterFeed:
    cdef public int queue_ref
    cdef public long long position
    cdef public Py_ssize_t subscription_count
    cdef object _desk
    cdef dict _abreast
    cdef list _ahead
    cdef list _slow
    cdef long long _trim_at

    @cython.locals(broker=Broker)
    cpdef on_ready(self, now_ms)

    @cython.locals(limit="long long", batch=StoredBatch, before="long long", broker=Broker)
    cdef bint _advance(self) except -1

    @cython.locals(limit="long long", inflight_max="long long", room="long long")
    cdef long long _shed(self) except -1

    @cython.locals(
        plain=bytes, numbered=list, batch=StoredBatch, encoder=PublishEncoder,
        metrics=DoorMetrics
    )
    cdef _send(self)

    @cython.locals(encoder=PublishEncoder, batch=StoredBatch, data=bytes, window=InflightWindow)
    cdef _send_numbered(self, list subscriptions)

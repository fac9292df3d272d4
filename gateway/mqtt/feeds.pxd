import cython

from core.broker cimport Broker
from core.lmq.expiry cimport take_expired
from core.lmq.waiters cimport Reader
from core.message cimport StoredBatch
from core.metrics cimport DoorMetrics
from gateway.mqtt.inflight cimport InflightWindow
from gateway.mqtt.publish_encoder cimport Form, PublishEncoder
from gateway.mqtt.session cimport Session, Subscription
from gateway.net.protocol cimport Transport

cdef Py_ssize_t _BATCH_COUNT_MAX
cdef Py_ssize_t _READ_BYTES_MAX
cdef long long _ROOM_MIN
cdef long long _NO_SLOT
cdef long long _NOT_KNOWN
cdef long long _ALL
cdef int _LEVEL_5
cdef int _EXACT
cdef Form _OLD_FORM


cdef class Desk(Reader):
    cdef public Broker broker
    cdef public object places
    cdef public object exact
    cdef public Form form_5
    cdef public DoorMetrics metrics
    cdef public long long inflight_max
    cdef public long long lag_count_max
    cdef public object queued
    cdef public StoredBatch batch
    cdef public PublishEncoder encoder

    cpdef want(self, Subscription subscription)

    cpdef wake(self, Session session)

    @cython.locals(expired=list)
    cpdef drop_expired(self, StoredBatch batch, long long now_ms, int queue_ref=*, bytes reader=*)


cdef class FilterFeed(Reader):
    cdef public int queue_ref
    cdef public long long position
    cdef public Py_ssize_t subscription_count
    cdef Desk _desk
    cdef list _abreast
    cdef list _ahead
    cdef list _away
    cdef list _slow
    cdef long long _slowest
    cdef list _solo

    @cython.locals(has_more=bint, max_offset="long long", subscription=Subscription)
    cpdef bint on_ready(self, long long now_ms) except -1

    @cython.locals(limit="long long", batch=StoredBatch, before="long long", broker=Broker, desk=Desk)
    cdef bint _advance(self, long long now_ms) except -1

    cpdef bint place(self, Subscription subscription) except -1

    cdef _put_abreast(self, Subscription subscription)

    @cython.locals(last=Subscription)
    cdef _take_out(self, Subscription subscription)

    cpdef long long gap(self, Subscription subscription) except -1

    cpdef long long position_of(self, Subscription subscription) except? -1

    @cython.locals(
        limit="long long", inflight_max="long long", room="long long", subscription=Subscription, session=Session,
        stuck=list,
    )
    cdef long long _shed(self) except -1

    @cython.locals(subscription=Subscription)
    cdef _fall_behind(self, list stuck)

    @cython.locals(
        plain=bytes, others=list, subscription=Subscription, batch=StoredBatch, encoder=PublishEncoder,
        metrics=DoorMetrics, desk=Desk,
    )
    cdef _send(self)

    @cython.locals(
        like=Subscription, is_5=bint, same=list, rest=list, subscription=Subscription, is_alike=bint
    )
    cdef _send_others(self, list subscriptions)

    @cython.locals(
        encoder=PublishEncoder, batch=StoredBatch, data=bytes, window=InflightWindow, subscription=Subscription,
        session=Session, desk=Desk,
    )
    cdef _send_alike(self, list subscriptions, int qos, Form form)


@cython.locals(session=Session, window=InflightWindow, before="long long", sent=list)
cpdef enter(Desk desk, Subscription subscription)

import cython

from core.message cimport StoredBatch
from gateway.mqtt.columns cimport RunColumns
from gateway.mqtt.feeds cimport FilterFeed, enter
from gateway.mqtt.inflight cimport InflightWindow
from gateway.mqtt.publish_encoder cimport Form, PublishEncoder
from gateway.mqtt.redelivery cimport Redelivery
from gateway.mqtt.session cimport Session, Subscription


cdef class Delivery(Redelivery):
    cdef public object on_replay_over
    cdef readonly dict _feeds

    @cython.locals(feed=FilterFeed)
    cpdef long long position_of(self, Subscription subscription) except? -1

    @cython.locals(window=InflightWindow, acked=Py_ssize_t)
    cpdef acknowledge(self, Session session, RunColumns columns)

    @cython.locals(source=int, subscription=Subscription)
    cdef _note_left(self, Session session, InflightWindow window)

    cpdef wake(self, Session session)

    cpdef want(self, Subscription subscription)

    @cython.locals(sent=Py_ssize_t, runs=Py_ssize_t)
    cpdef bint on_ready(self, long long now_ms) except -1

    @cython.locals(session=Session, limit="long long", feed=FilterFeed, batch=StoredBatch, sent=Py_ssize_t)
    cdef Py_ssize_t _run_behind(self, Subscription subscription) except -1

    @cython.locals(batch=StoredBatch, bytes_max=Py_ssize_t)
    cdef bint _read_behind(self, Subscription subscription, long long limit) except -1

    @cython.locals(
        session=Session, encoder=PublishEncoder, batch=StoredBatch, window=InflightWindow, data=bytes, form=Form
    )
    cdef Py_ssize_t _send_batch(self, Subscription subscription) except -1

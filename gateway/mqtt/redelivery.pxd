import cython

from core.message cimport StoredBatch
from gateway.mqtt.feeds cimport Desk
from gateway.mqtt.publish_encoder cimport Form
from gateway.mqtt.session cimport Session, Subscription


cdef class Redelivery(Desk):
    cdef public object catch_ups
    cdef public long long now_ms
    cdef public object now_ns
    cdef public object on_left
    cdef StoredBatch _one
    cdef object _waiting
    cdef dict _backlogs

    cdef _note_again(self, Session session)

    @cython.locals(level=int, keeps_retain=bint)
    cpdef Form _form_of(self, Subscription subscription)

    cpdef Py_ssize_t _write(self, Session session, bytes data, StoredBatch batch) except -1

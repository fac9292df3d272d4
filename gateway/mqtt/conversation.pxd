import cython

from core.message cimport PublishBatch
from gateway.mqtt.columns cimport RunColumns, encode_id_packets
from gateway.mqtt.events cimport AckRun, PublishRun
from gateway.mqtt.leaving cimport Leaving
from gateway.mqtt.services cimport MqttServices
from gateway.mqtt.session cimport Session
from gateway.net.protocol cimport Transport

cdef int _LEVEL_5
cdef int _PUBREC
cdef int _PUBREL
cdef int _PUBREL_FIRST
cdef int _EXACT
cdef int _QOS_MASK
cdef Py_ssize_t _RECEIVE_MAX


cdef class Conversation(Leaving):
    cdef bytes _origin
    cdef list _answers
    cdef public bint _tells_why
    cdef object _pacing
    cdef Py_ssize_t _pending
    cdef set _recs_due

    @cython.locals(
        door=MqttServices, batch=PublishBatch, count=Py_ssize_t, acks=bytes, session=Session, is_5=bint,
        allowed=Py_ssize_t,
    )
    cdef _publish(self, PublishRun run, long long now_ms)

    @cython.locals(due=set, i=Py_ssize_t)
    cdef _complete(self, RunColumns columns, bytes answer)

    cdef bytes _in_words(self, bytes acks, RunColumns columns, Session session, dict words)

    @cython.locals(batch=PublishBatch, packet_ids=list, count=Py_ssize_t, i=Py_ssize_t)
    cdef _send_later(self, bytes acks, long long ticket, RunColumns columns, Session session)

    @cython.locals(count=Py_ssize_t, batch=PublishBatch, i=Py_ssize_t)
    cdef _check_receive_max(self, PublishRun run, Session session)

    @cython.locals(transport=Transport)
    cpdef _send(self, bytes acks)

    @cython.locals(columns=RunColumns, session=Session)
    cdef _acknowledge(self, AckRun run)

import cython

from core.message cimport PublishBatch
from gateway.auth.permissions cimport Permissions
from gateway.mqtt.connection cimport MqttConnection
from gateway.mqtt.events cimport AckRun, PingRun, PublishRun
from gateway.mqtt.services cimport MqttServices
from gateway.mqtt.session cimport Session
from gateway.net.protocol cimport ConnectionHandler, Transport

cdef int _LOGIN


cdef class MqttHandler(ConnectionHandler):
    cdef public Transport transport
    cdef public Session session
    cdef MqttServices _door
    cdef readonly MqttConnection _connection
    cdef Permissions _may
    cdef object _attempt
    cdef bint _has_ended
    cdef object _denials
    cdef bytes _origin
    cdef readonly object identity
    cdef object _will
    cdef object _entering
    cdef object _steps
    cdef list _answers
    cdef Py_ssize_t _unkept

    cpdef bint on_data(self, bytes data, long long now_ms) except -1

    @cython.locals(has_more=bint)
    cpdef bint go_on(self, long long now_ms) except -1

    @cython.locals(connection=MqttConnection, has_more=bint, out=bytes)
    cdef bint _work(self, bytes data, long long now_ms) except -1

    @cython.locals(connection=MqttConnection, transport=Transport)
    cdef bint _act(self, long long now_ms) except -1

    cpdef next_deadline_ms(self)

    @cython.locals(door=MqttServices, batch=PublishBatch, count=Py_ssize_t, acks=bytes)
    cdef _publish(self, PublishRun run, long long now_ms)

    cpdef _send_acks(self, bytes acks)

    cdef _acknowledge(self, AckRun run)

import cython

from gateway.mqtt.arriving cimport Arriving
from gateway.mqtt.connection cimport MqttConnection
from gateway.mqtt.events cimport AckRun, PingRun, PublishRun
from gateway.mqtt.services cimport MqttServices
from gateway.net.protocol cimport Transport

cdef int _LOGIN


cdef class MqttHandler(Arriving):
    cdef bint _has_ended

    cdef bint _is_paused(self) except -1

    cdef bint _has_to_wait(self) except -1

    cpdef bint on_data(self, bytes data, long long now_ms) except -1

    @cython.locals(has_more=bint, data=bytes)
    cpdef bint go_on(self, long long now_ms) except -1

    @cython.locals(connection=MqttConnection, has_more=bint, out=bytes)
    cdef bint _work(self, bytes data, long long now_ms) except -1

    @cython.locals(connection=MqttConnection, transport=Transport)
    cdef bint _act(self, long long now_ms) except -1

    cpdef next_deadline_ms(self)

from gateway.auth.permissions cimport Permissions
from gateway.mqtt.connection cimport MqttConnection
from gateway.mqtt.services cimport MqttServices
from gateway.mqtt.session cimport Session
from gateway.net.protocol cimport ConnectionHandler, Transport


cdef class Leaving(ConnectionHandler):
    cdef public Transport transport
    cdef public Session session
    cdef MqttServices _door
    cdef readonly MqttConnection _connection
    cdef Permissions _may
    cdef object _attempt
    cdef object _denials
    cdef readonly object identity
    cdef object _will
    cdef object _entering
    cdef object _steps
    cdef Py_ssize_t _unkept

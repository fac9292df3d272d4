from core.broker cimport Broker
from core.metrics cimport DoorMetrics
from gateway.mqtt.delivery cimport Delivery
from gateway.mqtt.events cimport RunPool
from gateway.mqtt.publishing cimport Publishing


cdef class MqttServices:
    cdef public Broker broker
    cdef public DoorMetrics metrics
    cdef public object room
    cdef public object held
    cdef public object aside
    cdef public RunPool runs
    cdef public object exact
    cdef public object sessions
    cdef public Delivery delivery
    cdef public object subscribing
    cdef public Publishing publishing
    cdef public object authenticator
    cdef public object attachments
    cdef public object claims
    cdef public set strangers
    cdef public object settings
    cdef public object wills
    cdef public object sys_tree
    cdef object _connects
    cdef object _client_connects
    cdef public object sys_counts

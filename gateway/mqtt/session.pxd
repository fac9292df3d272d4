from gateway.mqtt.inflight cimport InflightWindow
from gateway.mqtt.topic_aliases cimport TopicAliases
from gateway.net.protocol cimport Transport


cdef class Session


cdef class Subscription:
    cdef public Session session
    cdef public bytes topic_filter
    cdef public int qos
    cdef public int queue_ref
    cdef public long long position
    cdef public long long first_offset
    cdef public long long dup_until
    cdef public tuple eras
    cdef public long long floor_slot
    cdef public long long sent_slot
    cdef public long long retained_slot
    cdef public int state
    cdef public Py_ssize_t abreast_at
    cdef public bint is_queued
    cdef public bint is_blocked
    cdef public bint is_replay
    cdef public bint is_solo
    cdef public int options
    cdef public long long identifier
    cdef public object group
    cdef public dict unacked
    cdef public dict done_before
    cdef public int source


cdef class Session:
    cdef public TopicAliases aliases
    cdef public bytes client_id
    cdef public bytes owner
    cdef public bint is_persistent
    cdef public Transport outlet
    cdef public dict subscriptions
    cdef public InflightWindow window
    cdef public list sources
    cdef public tuple free_sources
    cdef public list blocked
    cdef public dict retained_inflight
    cdef public dict catch_ups
    cdef public dict ended
    cdef public set taken
    cdef public list shared
    cdef public long long exact_number
    cdef public long long redelivered
    cdef public object pace
    cdef public int level
    cdef public long long next_look_ms
    cdef public long long expiry_s
    cdef public long long receive_max
    cdef public long long packet_bytes_max

    cpdef long long floor_slot_of(self, Py_ssize_t source) except? -1

    cpdef InflightWindow open_window(self, long long window_max)

    cpdef long long room(self, long long window_max) except? -1

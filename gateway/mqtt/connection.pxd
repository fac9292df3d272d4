import cython

from gateway.mqtt.codec cimport PacketReader
from gateway.mqtt.events cimport PublishRun, RunPool, make_ack_run, make_publish_run

cdef int _MORE
cdef int _PACKET
cdef int _PUBLISHES
cdef int _ACKS
cdef int _PINGS
cdef int _NEW
cdef int _LOGIN
cdef int _PROVING
cdef int _OPEN
cdef int _OVER
cdef long long _NEVER


@cython.final
cdef class MqttConnection:
    cdef public int level
    cdef public int state
    cdef RunPool _pool
    cdef readonly PacketReader _reader
    cdef Py_ssize_t _packet_bytes_max
    cdef long long _keep_alive_s
    cdef long long _connect_timeout_ms
    cdef long long _deadline_ms
    cdef long long _patience_ms
    cdef long long _last_data_ms
    cdef bint _is_bridge
    cdef bint _is_held
    cdef long long _reassure_at_ms
    cdef bint _was_let_in
    cdef Py_ssize_t _told_bytes_max
    cdef bytes _late
    cdef bytearray _out

    cpdef receive_data(self, data, long long now_ms)

    cpdef events(self)

    cpdef unread(self, PublishRun run)

    cpdef bytes data_to_send(self)

    cpdef next_deadline_ms(self)

    @cython.locals(reader=PacketReader)
    cdef _take_packet(self, int found)

    cpdef accept(self, long long now_ms, long long keep_alive_s=*, Py_ssize_t told_bytes_max=*, int alias_max=*)

    cpdef stop(self)

    cpdef note_heard(self, long long now_ms)

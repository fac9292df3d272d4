import cython

from gateway.mqtt.codec cimport PacketReader

cdef int _MORE
cdef int _PACKET
cdef int _PUBLISH_RUN
cdef int _PING_RUN
cdef long long _NEVER


@cython.final
cdef class MqttConnection:
    cdef public int level
    cdef public bint is_connected
    cdef public bint is_waiting
    cdef readonly PacketReader _reader
    cdef Py_ssize_t _packet_bytes_max
    cdef long long _keep_alive_s
    cdef long long _connect_timeout_ms
    cdef long long _deadline_ms
    cdef long long _patience_ms
    cdef long long _last_data_ms
    cdef bint _is_stopped
    cdef bint _is_held
    cdef bytes _late
    cdef bytearray _out

    cpdef receive_data(self, data, long long now_ms)

    cpdef note_heard(self, long long now_ms)

    cpdef unread_publishes(self)

    cpdef stop(self)

    cpdef accept(self, long long now_ms)

    @cython.locals(found=int)
    cpdef next_event(self)

    @cython.locals(reader=PacketReader, is_connect=bint)
    cdef _take_packet(self, int found)

    cpdef bytes data_to_send(self)

    cpdef next_deadline_ms(self)

import cython

from core cimport octets
from core.message cimport StoredBatch
from gateway.mqtt cimport varint
from gateway.mqtt.publish_block cimport BlockWriter, block_bytes_max
from gateway.mqtt.topic_aliases cimport TopicAliases

cdef Py_ssize_t _SCRATCH_BYTES
cdef int _ID_MAX
cdef Py_ssize_t _HEADER_BYTES_MAX
cdef int _FLAG_MARK
cdef int _FLAG_MARK_MASK
cdef int _FLAG_QOS_MASK
cdef int _FLAG_RETAIN
cdef int _FLAG_EXPIRES
cdef int _BARE_MASK
cdef int _BARE
cdef int _LEVEL_5
cdef Py_ssize_t _LENGTH_BYTES_MAX
cdef int _ALIAS_BYTES
cdef Form _OLD_FORM


@cython.final
cdef class Form:
    cdef readonly int level
    cdef public long long now_ms
    cdef readonly long long identifier
    cdef readonly bint keeps_retain
    cdef readonly TopicAliases aliases
    cdef readonly Py_ssize_t packet_bytes_max
    cdef readonly bint is_common


@cython.final
cdef class PublishEncoder:
    cdef public Py_ssize_t id_count
    cdef public Py_ssize_t body_bytes
    cdef public Py_ssize_t dup_count
    cdef int[::1] _id_positions
    cdef unsigned char[::1] _out
    cdef Py_ssize_t _size
    cdef StoredBatch _of
    cdef long long _fill_number
    cdef Py_ssize_t _count
    cdef int _granted_qos
    cdef int _level
    cdef long long _now_ms
    cdef bint _expires
    cdef BlockWriter _blocks
    cdef unsigned char[::1] _block
    cdef bytes _data

    @cython.locals(size=Py_ssize_t, is_first=bint, data=bytes)
    cpdef bytes encode(
        self, StoredBatch batch, int granted_qos, int first_id, long long dup_until=*, int retain=*, Form form=*
    )

    cdef bint _holds(self, StoredBatch batch, int granted_qos, Form form) except -1

    cpdef bytes renumber(self, int first_id)

    @cython.locals(size=Py_ssize_t, bodies=Py_ssize_t, i=Py_ssize_t, body_size=Py_ssize_t, length=Py_ssize_t)
    cdef Py_ssize_t _measure(self, StoredBatch batch, int granted_qos) except -1

    @cython.locals(size=Py_ssize_t, largest=Py_ssize_t, i=Py_ssize_t, bytes_max=Py_ssize_t)
    cdef Py_ssize_t _measure_blocks(self, StoredBatch batch, bint is_bare) except -1

    @cython.locals(topic_size=Py_ssize_t, size=Py_ssize_t)
    cdef int _find_alias(self, StoredBatch batch, const unsigned char[::1] buf, Py_ssize_t i, Form form) except? -99

    @cython.locals(age_ms="long long", start=Py_ssize_t, end=Py_ssize_t, is_own=bint)
    cdef Py_ssize_t _write_block(
        self, StoredBatch batch, const unsigned char[::1] buf, Py_ssize_t i, Form form, int alias,
        unsigned char[::1] out,
    ) except -1

    @cython.locals(
        block_size=Py_ssize_t, is_5=bint, alias=int, keeps_retain=bint, block="unsigned char[::1]", first=int,
        pos=Py_ssize_t, ids=Py_ssize_t, i=Py_ssize_t, qos=int, topic_size=Py_ssize_t, body_size=Py_ssize_t, dup=int,
        dups=Py_ssize_t
    )
    cdef Py_ssize_t _write(
        self, StoredBatch batch, const unsigned char[::1] buf, unsigned char[::1] out, int granted_qos, int next_id,
        long long dup_until, int retain, Form form,
    ) except -1

    @cython.locals(i=Py_ssize_t)
    cdef int _patch(self, unsigned char[::1] out, int next_id) except -1


@cython.locals(qos=int)
cdef int _effective_qos(int flag, int granted_qos) noexcept


cdef Py_ssize_t _write_header(unsigned char[::1] out, Py_ssize_t pos, int first, Py_ssize_t length) except -1

import cython

from core cimport octets
from core.message cimport StoredBatch

cdef Py_ssize_t _SCRATCH_BYTES
cdef int _ID_MAX
cdef Py_ssize_t _HEADER_BYTES_MAX
cdef int _FLAG_MARK
cdef int _FLAG_MARK_MASK
cdef int _FLAG_QOS_MASK


@cython.final
cdef class PublishEncoder:
    cdef public Py_ssize_t id_count
    cdef public Py_ssize_t body_bytes
    cdef int[::1] _id_positions
    cdef unsigned char[::1] _out
    cdef Py_ssize_t _size
    cdef StoredBatch _of
    cdef long long _fill_number
    cdef Py_ssize_t _count
    cdef int _granted_qos
    cdef bytes _data

    @cython.locals(size=Py_ssize_t, is_first=bint, data=bytes)
    cpdef bytes encode(self, StoredBatch batch, int granted_qos, int first_id, long long dup_until=*, int retain=*)

    cdef bint _holds(self, StoredBatch batch, int granted_qos) except -1

    cpdef bytes renumber(self, int first_id)

    @cython.locals(size=Py_ssize_t, bodies=Py_ssize_t, i=Py_ssize_t, body_size=Py_ssize_t, length=Py_ssize_t)
    cdef Py_ssize_t _measure(self, StoredBatch batch, int granted_qos) except -1

    @cython.locals(
        pos=Py_ssize_t, ids=Py_ssize_t, i=Py_ssize_t, qos=int, topic_size=Py_ssize_t, body_size=Py_ssize_t, dup=int
    )
    cdef Py_ssize_t _write(
        self, StoredBatch batch, const unsigned char[::1] buf, unsigned char[::1] out, int granted_qos, int next_id,
        long long dup_until, int retain,
    ) except -1

    @cython.locals(i=Py_ssize_t)
    cdef int _patch(self, unsigned char[::1] out, int next_id) except -1


cdef int _effective_qos(int flag, int granted_qos) noexcept


cdef int _length_size(Py_ssize_t length) noexcept


cdef Py_ssize_t _write_header(unsigned char[::1] out, Py_ssize_t pos, int first, Py_ssize_t length) except -1

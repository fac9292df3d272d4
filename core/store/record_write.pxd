import cython
from core cimport octets

cdef unsigned int _MAGIC_V1
cdef unsigned int _MAGIC_V2
cdef Py_ssize_t _TOPIC_V1_BYTES_MAX
cdef int _SYS_BORN_V6
cdef int _SYS_STORE_V6
cdef Py_ssize_t _HOST_V6_BYTES
cdef bytes _CRC_NAME
cdef Py_ssize_t _CRC_BYTES
cdef Py_ssize_t _SYS_FLAG_AT
cdef unsigned int _UNIT_BEGINS
cdef unsigned int _UNIT_ENDS
cdef int _UNIT_SHIFT


@cython.locals(at=Py_ssize_t)
cpdef Py_ssize_t write_fixed(
    unsigned char[::1] dst, Py_ssize_t pos, unsigned int magic, unsigned int body_crc, int queue_id, int flag,
    long long queue_offset, long long physical_offset, int sys_flag, long long born_ms, bytes born_host,
    long long store_ms, bytes store_host, int reconsume_times, long long prepared_offset
) except -1


@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t write_topic(unsigned char[::1] dst, Py_ssize_t at, bytes topic) except -1


@cython.locals(value="unsigned int", _=int)
cpdef Py_ssize_t write_crc(unsigned char[::1] dst, Py_ssize_t start, Py_ssize_t at) except -1


@cython.locals(sys_flag="unsigned int", part="unsigned int")
cpdef end_part(unsigned char[::1] dst, Py_ssize_t start)


cpdef unsigned int magic_of(Py_ssize_t topic_size)


@cython.locals(born=int)
cpdef int host_flags(bytes born_host, bytes store_host) except -1

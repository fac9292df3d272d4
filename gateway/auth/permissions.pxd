cdef class Permissions:
    cdef bint _configure
    cdef bint _publish
    cdef bint _subscribe
    cdef public long long version

    cpdef become(self, Permissions other)

    cpdef bint reads_less_than(self, Permissions other) except -1

    cpdef bint may_publish(self, bytes topic) except -1

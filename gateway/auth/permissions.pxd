cdef class Permissions:
    cdef bint _configure
    cdef bint _publish
    cdef bint _subscribe

    cpdef bint may_publish(self, bytes topic) except -1

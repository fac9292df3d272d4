import cython

from core.cache_budget cimport Cache, CacheBudget


cdef class Rights:
    cdef public CacheBudget caches
    cdef public Py_ssize_t version


cdef class Permissions:
    cdef bint _configure
    cdef bint _publish
    cdef bint _subscribe
    cdef object _judge
    cdef Cache _known
    cdef str _name
    cdef Rights _rights
    cdef object _subject
    cdef Py_ssize_t _version
    cdef public bint has_lost

    cpdef Py_ssize_t find_version(self) except? -2

    cdef _look(self, Rights rights)

    @cython.locals(known=object)
    cpdef bint may_publish(self, bytes topic) except -1

    @cython.locals(known=object)
    cdef bint _find(self, str action, bytes vhost, bytes name) except -1

import cython

cdef Py_ssize_t _BYTES_MAX
cdef Py_ssize_t _TOPIC_BYTES_MIN
cdef Py_ssize_t _COUNTED_MAX
cdef int _PERIOD


@cython.final
cdef class TopicAlias:
    cdef readonly int number
    cdef public bytes topic
    cdef public long long uses


@cython.final
cdef class TopicAliases:
    cdef readonly Py_ssize_t count_max
    cdef dict _by_topic
    cdef dict _counts
    cdef Py_ssize_t _bytes
    cdef int _left

    @cython.locals(alias=TopicAlias)
    cpdef int find(self, bytes topic) except? -99

    @cython.locals(alias=TopicAlias, count="long long")
    cdef int _count(self, bytes topic) except? -99

    @cython.locals(has_room=bint, least=TopicAlias)
    cdef TopicAlias _take_alias(self, long long count, Py_ssize_t size)

    @cython.locals(alias=TopicAlias)
    cdef _age(self)

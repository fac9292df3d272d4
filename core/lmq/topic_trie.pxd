import cython


@cython.final
@cython.no_gc
cdef class TopicNode:
    cdef public dict children
    cdef public TopicNode plus
    cdef public TopicNode rest
    cdef public object values
    cdef public object rest_values
    cdef public long long seen


cdef class TopicTrie:
    cdef dict _exact
    cdef TopicNode _open
    cdef TopicNode _hiding
    cdef Py_ssize_t _pair_count
    cdef Py_ssize_t _wildcard_count
    cdef long long _match_number

    @cython.locals(start=Py_ssize_t, slots=Py_ssize_t, levels=list)
    cpdef match(self, bytes topic, list out)

    @cython.locals(
        active=list, staying=list, following=list, level=bytes, node=TopicNode, slots=Py_ssize_t, i=Py_ssize_t,
        staying_count=Py_ssize_t
    )
    cdef Py_ssize_t _walk(self, TopicNode root, list levels, list out) except -1

    @cython.locals(slots=Py_ssize_t, children=dict, child=TopicNode, plus=TopicNode)
    cdef Py_ssize_t _step(self, TopicNode node, bytes level, list following, list staying, list out) except -1

    @cython.locals(slots=Py_ssize_t, rest=TopicNode)
    cdef Py_ssize_t _enter(self, TopicNode node, list staying, list out) except -1


cdef Py_ssize_t report(object slot, list out) except -1

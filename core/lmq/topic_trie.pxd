import cython

from core cimport untracked
from core.bytes_map cimport BytesMap

cdef bytes _SLASH
cdef int _DOLLAR
cdef Py_ssize_t _PASSED_MAX
cdef Py_ssize_t _WIDE_MIN
cdef Py_ssize_t _PAIRWISE_MAX


@cython.final
cdef class TopicNode:
    cdef public object children
    cdef public TopicNode plus
    cdef public TopicNode rest
    cdef public object values
    cdef public object rest_values
    cdef public long long seen


@cython.final
cdef class TopicTrie:
    cdef BytesMap _exact
    cdef TopicNode _open
    cdef TopicNode _hiding
    cdef Py_ssize_t _pair_count
    cdef Py_ssize_t _wildcard_count
    cdef long long _match_number

    @cython.locals(start=Py_ssize_t, slots=Py_ssize_t)
    cpdef match(self, bytes topic, list out)

    @cython.locals(
        states=list, staying=list, slots=Py_ssize_t, head=Py_ssize_t, tail=Py_ssize_t, staying_count=Py_ssize_t,
        i=Py_ssize_t, level=bytes, node=TopicNode
    )
    cdef Py_ssize_t _walk(self, bytes topic, list out) except -1

    @cython.locals(slots=Py_ssize_t, child=TopicNode)
    cdef Py_ssize_t _step(self, TopicNode node, bytes level, list states, list staying, list out) except -1

    @cython.locals(slots=Py_ssize_t)
    cdef Py_ssize_t _enter(self, TopicNode node, list states, list staying, list out) except -1


cdef Py_ssize_t report(object slot, list out) except -1


@cython.locals(end=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t)
cdef bint are_distinct(list values, Py_ssize_t start) except -1


@cython.locals(pair=tuple, many=dict, wide=BytesMap)
cdef TopicNode find_child(object children, bytes level)

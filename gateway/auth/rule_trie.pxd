import cython

cdef Py_ssize_t _NO_RULE


@cython.final
cdef class Node:
    cdef public dict children
    cdef public Node plus
    cdef public Py_ssize_t rest
    cdef public Py_ssize_t number
    cdef public Py_ssize_t least


@cython.final
cdef class RuleTrie:
    cdef Node _root

    @cython.locals(levels=list, root=Node, child=Node)
    cpdef Py_ssize_t find_first(self, bytes topic) except -1


@cython.locals(child=Node)
cdef Py_ssize_t _first(Node node, list levels, Py_ssize_t i, Py_ssize_t end, Py_ssize_t best) except -1

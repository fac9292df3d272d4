import cython

from core.cache_budget cimport Cache, CacheBudget
from core.lmq.topic_trie cimport TopicTrie
from core.message cimport Route


@cython.final
cdef class Router:
    cdef public long long generation
    cdef public long long made_count
    cdef object _make_route
    cdef TopicTrie _trie
    cdef CacheBudget _caches
    cdef Cache _routes
    cdef TopicTrie _changes
    cdef long long _change_number
    cdef TopicTrie _relays
    cdef long long _renewed_at

    @cython.locals(cached=Route, route=Route)
    cpdef route(self, bytes topic)

    cdef bint _is_still_right(self, bytes topic, Route cached) except -1

from core.pop.journal cimport PopJournal
from core.pop.pop_queue cimport PopDesk


cdef class PopService:
    cdef public PopJournal journal
    cdef object _store
    cdef readonly PopDesk _desk
    cdef dict _queues
    cdef readonly object endings
    cdef dict _states
    cdef dict _resting

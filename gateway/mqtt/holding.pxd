from gateway.mqtt.conversation cimport Conversation


cdef class Holding(Conversation):
    cdef object _aside
    cdef object _awaited
    cdef bytes _claimed
    cdef object _topics
    cdef object _waiting_run

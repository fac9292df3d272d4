import cython

from core.lmq.expiry cimport is_expired
from core.message cimport StoredBatch
from gateway.amqp.shared_queue cimport SharedQueue


@cython.locals(taken=Py_ssize_t, _=int)
cpdef Py_ssize_t take_first(SharedQueue queue, StoredBatch stored, long long now_ms) except? -1

import cython
from core.message cimport DispatchSet, PublishBatch, Route
from core.store.head_index cimport HeadIndex

cdef Py_ssize_t _HEAD_BYTES
cdef Py_ssize_t _SET_RECORD_BYTES
cdef Py_ssize_t _SET_NAME_BYTES
cdef Py_ssize_t _PROPERTIES_BYTES_MAX
cdef Py_ssize_t _CRC_BYTES
cdef Py_ssize_t _BLANK_BYTES
cdef int _NOT_DISPATCHED
cdef Py_ssize_t _DECIMAL_BYTES
cdef Py_ssize_t _VARINT_BYTES


@cython.locals(dispatch=DispatchSet, body_size=Py_ssize_t, extra_size=Py_ssize_t, properties_size=Py_ssize_t)
cpdef Py_ssize_t bound_record(
    PublishBatch batch, Py_ssize_t i, Route route, Py_ssize_t count, HeadIndex head, Py_ssize_t ahead
) except -1


@cython.locals(k=Py_ssize_t, value="long long")
cdef Py_ssize_t _exact_size(
    Py_ssize_t properties_size, DispatchSet dispatch, Py_ssize_t count, HeadIndex head, Py_ssize_t ahead
) except -1


@cython.locals(entries="long long", i=Py_ssize_t, route=Route)
cpdef long long count_entries(PublishBatch batch) except -1


@cython.locals(
    need="long long", each="long long", once="long long", total="long long", more="long long", i=Py_ssize_t,
    route=Route, count=Py_ssize_t,
)
cpdef long long bound_batch(PublishBatch batch, HeadIndex head, Py_ssize_t set_again_bytes, long long limit) except -1


cdef Py_ssize_t _bound_set(DispatchSet dispatch) except -1

import cython

from core cimport octets
from core.envelope cimport read_decimal
from core.message cimport StoredBatch

cdef int _MARKS
cdef int _MARKED
cdef bytes _TTL_NAME


@cython.locals(ttl_ms="long long")
cpdef bint is_expired(StoredBatch stored, Py_ssize_t i, long long now_ms, long long limit_ms) except -1


@cython.locals(life_ms="long long", ttl_ms="long long")
cpdef long long expires_at(StoredBatch stored, Py_ssize_t i, long long limit_ms) except? -2


@cython.locals(buf="const unsigned char[::1]", after=Py_ssize_t)
cpdef long long read_ttl(object src, Py_ssize_t pos, Py_ssize_t end) except? -2


@cython.locals(i=Py_ssize_t)
cpdef Py_ssize_t count_expired(StoredBatch stored, long long now_ms, long long limit_ms) except -1


@cython.locals(i=Py_ssize_t, kept=Py_ssize_t, gone=list, may_be=cython.bint)
cpdef list take_expired(StoredBatch stored, long long now_ms, long long limit_ms, long long fresh_from)


cpdef int move(StoredBatch stored, Py_ssize_t i, Py_ssize_t to) except -1

import cython

from core cimport octets
from core.message cimport StoredBatch

cdef int _ACK
cdef int _REQUEUE
cdef int _DROP
cdef unsigned int _BASIC_ACK
cdef unsigned int _BASIC_REJECT
cdef unsigned int _BASIC_NACK
cdef Py_ssize_t _SETTLE_SIZE


@cython.locals(index="unsigned int")
cpdef bint is_settle(const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end) except -1


cdef class UnackedRing:
    cdef public long long first_tag
    cdef public long long next_tag
    cdef public Py_ssize_t live
    cdef public Py_ssize_t got
    cdef public int[::1] in_flight
    cdef public Py_ssize_t settled_count
    cdef public int[::1] settled_slot
    cdef public int[::1] settled_kind
    cdef public long long[::1] settled_offset
    cdef public long long unknown_tag
    cdef public long long unknown_in
    cdef public dict held
    cdef int[::1] _is_of_gets
    cdef int[::1] _slot
    cdef long long[::1] _offset
    cdef long long _mask
    cdef dict _late
    cdef long long _known_from

    cpdef long long oldest_tag(self) except -1
    cpdef Py_ssize_t slot_of(self, long long tag) except -1

    @cython.locals(size=Py_ssize_t, i=Py_ssize_t, grown="int[::1]", of_gets="int[::1]")
    cpdef take_slot(self, Py_ssize_t slot, bint is_of_gets)

    @cython.locals(
        count=Py_ssize_t, first="long long", place="long long", i=Py_ssize_t
    )
    cpdef long long push(self, StoredBatch stored, int slot) except -1

    @cython.locals(first="long long", i=Py_ssize_t)
    cpdef long long skip(self, Py_ssize_t count) except -1

    @cython.locals(used="long long", room="long long")
    cdef void _make_room(self, Py_ssize_t count) except *

    @cython.locals(tag="long long", place="long long")
    cpdef bint holds(self, int slot, long long offset) except -1

    @cython.locals(tag="long long", place="long long")
    cpdef bint has_settled(self, int slot, long long offset, long long from_tag) except -1

    @cython.locals(tag="long long", place="long long")
    cdef void _move_late(self) except *

    @cython.locals(slots="int[::1]", offsets="long long[::1]", tag="long long")
    cdef void _grow(self, long long room) except *

    @cython.locals(index="unsigned int", tag="long long", bits=int, kind=int, is_multiple=bint)
    cpdef Py_ssize_t cut_settles(
        self, const unsigned char[::1] buf, Py_ssize_t pos, Py_ssize_t end, unsigned int channel
    ) except -1

    cdef bint _hold(self, dict held, long long tag, int kind, bint is_multiple) except -1

    @cython.locals(tag="long long")
    cpdef settle_oldest(self, long long count, int kind)

    cdef bint _settle(self, long long tag, int kind, bint is_multiple) except -1

    cdef bint _is_live(self, long long tag) except -1

    cdef void _settle_late(self, long long tag, int kind, bint is_multiple) except *

    @cython.locals(slot=int)
    cdef void _put(self, long long place, int kind) except *

    @cython.locals(i=Py_ssize_t)
    cdef void _note(self, int slot, long long offset, int kind) except *

    @cython.locals(i=Py_ssize_t, slots="int[::1]", kinds="int[::1]", offsets="long long[::1]")
    cdef void _grow_settled(self, Py_ssize_t room) except *

    @cython.locals(i=Py_ssize_t)
    cpdef bint is_uniform(self) except -1

    @cython.locals(count=Py_ssize_t, i=Py_ssize_t)
    cpdef Py_ssize_t collect(self, int slot, int kind, long long[::1] into) except -1

    @cython.locals(i=Py_ssize_t)
    cpdef list settled_slots(self)

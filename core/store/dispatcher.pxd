import cython
from core cimport octets
from core.message cimport StoredBatch
from core.store.head_index cimport HeadIndex
from core.store.queue_names cimport QueueNames
from core.store.record cimport fill_columns, find_property, is_gap, is_intact, is_set, read_decimal, record_size

cdef int _HOLE
cdef int _NOT_DISPATCHED
cdef bytes _NAMES
cdef bytes _OFFSETS
cdef bytes _SET
cdef Py_ssize_t _CRC_BYTES
cdef bytes _CRC_NAME
cdef Py_ssize_t _LOST_BYTES_MIN
cdef Py_ssize_t _LOST_MAX


@cython.final
cdef class Dispatcher:
    cdef readonly QueueNames names
    cdef readonly HeadIndex head
    cdef StoredBatch columns
    cdef dict topics
    cdef bytes last_topic
    cdef int last_queue_id
    cdef int last_ref
    cdef dict lists
    cdef readonly dict sets
    cdef dict set_offsets
    cdef bint is_punched
    cdef dict uses
    cdef long long doubts
    cdef set sure
    cdef set unsure
    cdef readonly long long records
    cdef readonly long long lost
    cdef readonly dict unplaced
    cdef readonly long long store_ms

    @cython.locals(size=Py_ssize_t)
    cpdef Py_ssize_t run(self, const unsigned char[::1] buf, long long base, Py_ssize_t pos) except -1

    @cython.locals(columns=StoredBatch, is_one=bint)
    cpdef lose(self, const unsigned char[::1] buf, long long base, Py_ssize_t pos, Py_ssize_t end)

    cpdef settle(self)

    cdef _doubt(self, Py_ssize_t records)

    @cython.locals(
        columns=StoredBatch, start=Py_ssize_t, end=Py_ssize_t, crc_at=Py_ssize_t, at=Py_ssize_t,
        body_crc="unsigned int",
    )
    cdef bint _lose_places(self, const unsigned char[::1] buf, Py_ssize_t pos) except -1

    @cython.locals(k=Py_ssize_t, names=list, offsets=list, refs=list, ref=int, offset="long long")
    cdef bint _lose_inline(
        self, const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t start, Py_ssize_t properties_end
    ) except -1

    @cython.locals(columns=StoredBatch, ref=int, start=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t)
    cdef _dispatch(self, const unsigned char[::1] buf, long long base, Py_ssize_t pos)

    @cython.locals(start=Py_ssize_t, end=Py_ssize_t, topic=bytes, key=bytes, ref=int)
    cdef int _topic_ref(self, const unsigned char[::1] buf, int queue_id) except -1

    @cython.locals(ref=int)
    cdef int _intern(self, bytes key) except -1

    @cython.locals(head=HeadIndex, next_offset="long long")
    cdef _place(self, int ref, long long offset, int pos)

    @cython.locals(
        end=Py_ssize_t, text=bytes, refs="int[::1]", count=Py_ssize_t, k=Py_ssize_t, comma=Py_ssize_t,
        value="long long",
    )
    cdef _dispatch_inline(
        self, const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t start, Py_ssize_t properties_end, int pos
    )

    cdef _learn_list(self, bytes text)

    @cython.locals(columns=StoredBatch)
    cdef _learn_set(self, const unsigned char[::1] buf, long long physical_offset)

    @cython.locals(k=Py_ssize_t, ref=int)
    cpdef take_set(self, long long physical_offset, list names, offsets)

    @cython.locals(k=Py_ssize_t, ref=int)
    cpdef offsets_of(self, list names)

    cdef _note_unplaced(self, long long place, int pos)

    @cython.locals(start=Py_ssize_t)
    cdef _pass_gap(self, const unsigned char[::1] buf, long long base)

    @cython.locals(place="long long")
    cdef _dispatch_interned(
        self, const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t properties_end, int pos, int entry
    )

    @cython.locals(ref=int)
    cdef _dispatch_doubtful(self, int[::1] refs, int entry)

    @cython.locals(head=HeadIndex, starts="int[::1]", offsets="long long[::1]", k=Py_ssize_t, ref=int)
    cdef _dispatch_use(self, long long place, int[::1] refs, int pos, int entry)

    cdef _skip_to(self, int ref, long long offset)


@cython.locals(close=Py_ssize_t)
cdef bytes _read_text(const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t end)


@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _count_fields(const unsigned char[::1] buf, Py_ssize_t at, Py_ssize_t end) except -1

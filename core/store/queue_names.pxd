import cython

from core cimport octets

cdef int _NAME_BYTES_MAX
cdef int _HEADER_BYTES
cdef int _OVERHEAD
cdef int _AROUND
cdef int _LINE_BREAK
cdef long long _RESYNC_BYTES
cdef long long _TEXT_MAX
cdef long long _HASH_MASK
cdef long long _REF_MASK


@cython.final
cdef class QueueNames:
    cdef readonly list files
    cdef readonly int count
    cdef long long count_max
    cdef bytes spared
    cdef readonly long long top
    cdef public object restored_path
    cdef long long writes
    cdef long long synced
    cdef bint is_named
    cdef object text_memory
    cdef object start_memory
    cdef object slot_memory
    cdef long long mask
    cdef unsigned char[::1] text
    cdef int[::1] starts
    cdef long long[::1] slots

    cdef grow_text(self, long long size)

    @cython.locals(size="long long", crc="unsigned int")
    cdef Py_ssize_t check_entry(self, long long start, long long end) except -1

    cdef Py_ssize_t find_entry(self, long long start, long long end) except -2

    @cython.locals(size="long long")
    cdef parse(self, long long end)

    cdef number(self, bytes key)

    @cython.locals(slot="long long")
    cdef int put_slot(self, long long value) except -1

    @cython.locals(narrow="long long[::1]", slot="long long")
    cdef widen(self)

    @cython.locals(
        view="const unsigned char[::1]", size=Py_ssize_t, tag="long long", slot="long long", found="long long",
        ref="long long", start="long long",
    )
    cpdef int find(self, bytes key) except -2

    @cython.locals(ref=int, size=Py_ssize_t, start="long long", end="long long")
    cpdef int intern(self, bytes key) except -1

    @cython.locals(start="long long", size=Py_ssize_t)
    cpdef bytes key(self, int ref)

    @cython.locals(
        view="const unsigned char[::1]", skipped=Py_ssize_t, found=bytearray, lines="unsigned char[::1]",
        start="long long", until="long long", pos=Py_ssize_t, size=Py_ssize_t,
    )
    cpdef bytes lines(self, long long first, long long end, bytes prefix)

    @cython.locals(end="long long")
    cpdef unsigned int fingerprint(self, int count) except? 0xFFFFFFFF

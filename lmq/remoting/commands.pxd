import cython


cdef class Command:
    cdef public int code
    cdef public int opaque
    cdef public int flag
    cdef public dict ext
    cdef public object body
    cdef public str remark
    cdef public int version
    cdef public int language
    cdef public int header_type


cpdef bytes encode_command(Command command)

cpdef bytes encode_header(Command command)

cpdef bytes encode_prefix(bytes header, int header_type, Py_ssize_t body_bytes)

cpdef Command decode_header(int header_type, bytes header, body=*)

cdef bytes _encode_json(Command command)

@cython.locals(is_plain=bint)
cdef Command _decode_json(bytes header, body)

cdef int _integer(dict fields, str name) except? -1

cdef dict _texts(dict ext, bint is_plain)

cdef bint _are_texts(dict ext) except -1

cdef bytes _encode_binary(Command command)

cdef Command _decode_binary(bytes header, body)

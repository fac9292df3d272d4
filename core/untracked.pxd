# The C form of core/untracked.py. Cython's `no_gc` has no effect on a class whose body is in a .py.
cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object thing) noexcept


cdef inline void untrack(object thing) noexcept:
    PyObject_GC_UnTrack(thing)

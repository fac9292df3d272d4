import cython

from core cimport untracked


@cython.locals(made=list)
cpdef list make_long_list(object things)

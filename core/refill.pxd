# Inline C form of core/refill.py.
cdef extern from *:
    """
    static inline int lmq_empty(PyObject *items) {
        Py_ssize_t size = PyList_GET_SIZE(items);
        if (size > 1) return PyList_SetSlice(items, 0, size, NULL);
        if (size == 1) {
            PyObject *only = PyList_GET_ITEM(items, 0);
            Py_SET_SIZE((PyVarObject *)items, 0); /* before anything can run that looks at the list */
            Py_DECREF(only);
        }
        return 0;
    }
    """
    int lmq_empty(object items) except -1


cdef inline int empty(list items) except -1:
    if items is None:
        raise TypeError("not a list")
    return lmq_empty(items)

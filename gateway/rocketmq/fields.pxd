from lmq.remoting.commands cimport Command


cpdef str text_field(Command request, str name)

cpdef long long integer_field(Command request, str name, otherwise=*) except? -1

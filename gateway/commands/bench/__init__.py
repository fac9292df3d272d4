"""Load for `lmq bench`: publishers and consumers that speak just enough of a protocol to cost little themselves.

`load.run` runs them; a door's module has its two peers. They know nothing of this gateway but the doors' protocols.
"""

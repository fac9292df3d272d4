"""The states of one RocketMQ connection, and what leads from each to the next.

The protocol has no handshake: each request names its user. So a connection belongs to the user of its last request,
and a request of another user is a login of its own.
"""

from __future__ import annotations

from enum import IntEnum


class State(IntEnum):
    """Where a connection is."""

    NEW = 0  # whose it is is not known; the next request tells
    LOGIN = 1  # whether that request is whose it says is found out; nothing more is read until then
    OPEN = 2
    OVER = 3  # nothing more is read


class Step(IntEnum):
    """What happens to a connection: requests of the peer, then what the handler does."""

    REQUEST = 0  # in OPEN one of the connection's user
    OTHER = 1  # a request that does not prove to be the connection's user's
    ACCEPT = 2
    REFUSE = 3
    STOP = 4


# A step that is not listed cannot happen: in LOGIN and OVER no request is read.
TRANSITIONS: dict[State, dict[Step, State]] = {
    State.NEW: {
        Step.REQUEST: State.LOGIN,
        Step.STOP: State.OVER,
    },
    State.LOGIN: {
        Step.ACCEPT: State.OPEN,
        Step.REFUSE: State.NEW,  # the request is answered so, and the next one is heard
        Step.STOP: State.OVER,
    },
    State.OPEN: {
        Step.REQUEST: State.OPEN,
        Step.OTHER: State.LOGIN,
        Step.STOP: State.OVER,
    },
    State.OVER: {
        Step.STOP: State.OVER,
    },
}


def follow(state: int, step: Step) -> State:
    """Return the state after a step."""
    return TRANSITIONS[State(state)][step]

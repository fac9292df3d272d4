"""The states of one MQTT connection, what leads from each to the next, and what may not happen in it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from gateway.mqtt.errors import ProtocolViolationError


class State(IntEnum):
    """Where a connection is."""

    NEW = 0  # its CONNECT is waited for
    LOGIN = 1  # it gave its name; nothing more is taken until the handler lets it in
    PROVING = 2  # it is to prove its name by AUTH; nothing else is taken
    OPEN = 3
    OVER = 4  # nothing more is taken


class Step(IntEnum):
    """What happens to a connection: packets of the peer, then what the handler does."""

    CONNECT = 0
    DISCONNECT = 1
    PACKET = 2  # any other
    ACCEPT = 3
    STOP = 4
    ASK = 5  # for more of an enhanced authentication
    AUTH = 6


class Fault(NamedTuple):
    """A step that the protocol does not have in a state."""

    clause: str
    reason: str


_TOO_EARLY = Fault("MQTT-3.1.0-1", "the first packet is no CONNECT")
_TWICE = Fault("MQTT-3.1.0-2", "a second CONNECT")

# A step that is not listed cannot happen: in LOGIN and OVER no packet is read.
TRANSITIONS: dict[int, dict[int, State | Fault]] = {
    State.NEW: {
        Step.CONNECT: State.LOGIN,
        Step.DISCONNECT: _TOO_EARLY,
        Step.PACKET: _TOO_EARLY,
        Step.AUTH: _TOO_EARLY,
        Step.STOP: State.OVER,
    },
    State.LOGIN: {
        Step.ACCEPT: State.OPEN,
        Step.ASK: State.PROVING,
        Step.STOP: State.OVER,
    },
    State.PROVING: {
        Step.CONNECT: _TWICE,
        Step.DISCONNECT: State.OVER,
        Step.PACKET: Fault("MQTT-3.1.2-30", "a packet before the authentication is done"),
        Step.AUTH: State.LOGIN,
        Step.STOP: State.OVER,
    },
    State.OPEN: {
        Step.CONNECT: _TWICE,
        Step.DISCONNECT: State.OVER,
        Step.PACKET: State.OPEN,
        Step.AUTH: State.OPEN,
        Step.STOP: State.OVER,
    },
    State.OVER: {
        Step.STOP: State.OVER,
    },
}


def follow(state: int, step: Step) -> State:
    """Return the state after a step.

    Raises:
        ProtocolViolationError: The peer may not do that now.
    """
    found = TRANSITIONS[state][step]  # a number finds its member
    if isinstance(found, Fault):
        raise ProtocolViolationError(found.clause, found.reason)
    return found

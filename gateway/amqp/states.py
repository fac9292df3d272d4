"""The states of one AMQP connection, and what leads from each to the next."""

from __future__ import annotations

from enum import IntEnum

from pamqp.commands import Connection as Method


class State(IntEnum):
    """Where the connection is; what is waited for."""

    HEADER = 0
    START_OK = 1
    LOGIN = 2  # the handler's answer
    SECURE_OK = 3  # the next message of a login that goes in steps
    TUNE_OK = 4
    OPEN_METHOD = 5
    OPENING = 6  # the handler's answer
    OPEN = 7
    CLOSING = 8  # we sent connection.close
    CLOSED = 9


class Step(IntEnum):
    """What happens to a connection: what its peer sends, then what the handler answers, then the ends."""

    HEADER = 0  # the protocol header, and the right one
    START_OK = 1
    SECURE_OK = 2
    TUNE_OK = 3
    OPEN = 4
    UPDATE_SECRET = 5
    CLOSE = 6
    CLOSE_OK = 7
    SECURE = 8  # the client is asked for more, to prove its name
    ACCEPT_LOGIN = 9
    ACCEPT_OPEN = 10
    FAIL = 11  # the peer broke a rule, or is turned out
    END = 12  # the peer is gone, silent, or not told why


# A step that is not listed is not allowed in that state. A FAIL that leads to CLOSING is told by connection.close.
TRANSITIONS: dict[State, dict[Step, State]] = {
    State.HEADER: {
        Step.HEADER: State.START_OK,
        Step.FAIL: State.CLOSED,
        Step.END: State.CLOSED,
    },
    State.START_OK: {
        Step.START_OK: State.LOGIN,
        Step.FAIL: State.CLOSED,
        Step.END: State.CLOSED,
    },
    State.LOGIN: {  # nothing that comes is read
        Step.ACCEPT_LOGIN: State.TUNE_OK,
        Step.SECURE: State.SECURE_OK,
        Step.FAIL: State.CLOSING,
        Step.END: State.CLOSED,
    },
    State.SECURE_OK: {
        Step.SECURE_OK: State.LOGIN,
        Step.FAIL: State.CLOSED,
        Step.END: State.CLOSED,
    },
    State.TUNE_OK: {
        Step.TUNE_OK: State.OPEN_METHOD,
        Step.CLOSE: State.CLOSED,
        Step.FAIL: State.CLOSING,
        Step.END: State.CLOSED,
    },
    State.OPEN_METHOD: {
        Step.OPEN: State.OPENING,
        Step.CLOSE: State.CLOSED,
        Step.FAIL: State.CLOSING,
        Step.END: State.CLOSED,
    },
    State.OPENING: {
        Step.ACCEPT_OPEN: State.OPEN,
        Step.CLOSE: State.CLOSED,
        Step.FAIL: State.CLOSING,
        Step.END: State.CLOSED,
    },
    State.OPEN: {
        Step.UPDATE_SECRET: State.OPEN,
        Step.CLOSE: State.CLOSED,
        Step.FAIL: State.CLOSING,
        Step.END: State.CLOSED,
    },
    State.CLOSING: {
        Step.CLOSE: State.CLOSED,
        Step.CLOSE_OK: State.CLOSED,
        Step.FAIL: State.CLOSED,
        Step.END: State.CLOSED,
    },
    State.CLOSED: {
        Step.FAIL: State.CLOSED,
        Step.END: State.CLOSED,
    },
}
STEP_BY_METHOD = {
    Method.StartOk: Step.START_OK,
    Method.SecureOk: Step.SECURE_OK,
    Method.TuneOk: Step.TUNE_OK,
    Method.Open: Step.OPEN,
    Method.UpdateSecret: Step.UPDATE_SECRET,
    Method.Close: Step.CLOSE,
    Method.CloseOk: Step.CLOSE_OK,
}
# RabbitMQ's names of the states in which a method can come.
STATE_NAMES = {
    State.START_OK: "starting",
    State.LOGIN: "securing",
    State.SECURE_OK: "securing",
    State.TUNE_OK: "tuning",
    State.OPEN_METHOD: "opening",
    State.OPENING: "opening",
    State.OPEN: "running",
}


def find_next(state: int, step: Step | None) -> State | None:
    """Return the state after a step, None where it is not allowed."""
    return None if step is None else TRANSITIONS[State(state)].get(step)


def follow(state: int, step: Step) -> State:
    """Return the state after a step of our own."""
    return TRANSITIONS[State(state)][step]

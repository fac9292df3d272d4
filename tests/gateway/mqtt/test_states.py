from __future__ import annotations

import pytest

from gateway.mqtt.errors import ProtocolViolationError
from gateway.mqtt.states import TRANSITIONS, Fault, State, Step, follow

CELLS = [(state, step, found) for state, row in TRANSITIONS.items() for step, found in row.items()]


def test_each_state_has_a_row_and_each_but_the_first_is_reached():
    assert list(TRANSITIONS) == list(State)
    reached = {found for state, _, found in CELLS if isinstance(found, State) and found != state}
    assert reached == {*State} - {State.NEW}


def test_connection_can_be_stopped_in_each_state_and_ends_there():
    assert {row[Step.STOP] for row in TRANSITIONS.values()} == {State.OVER}
    assert {*TRANSITIONS[State.OVER].values()} == {State.OVER}


@pytest.mark.parametrize(("state", "step", "found"), CELLS)
def test_table_is_followed(state, step, found):
    if isinstance(found, Fault):
        with pytest.raises(ProtocolViolationError) as caught:
            follow(state, step)
        assert caught.value.clause == found.clause
    else:
        assert follow(int(state), step) is found


@pytest.mark.parametrize("step", [Step.CONNECT, Step.PACKET, Step.DISCONNECT])
def test_peer_is_not_heard_while_it_logs_in(step):
    with pytest.raises(KeyError):
        follow(State.LOGIN, step)

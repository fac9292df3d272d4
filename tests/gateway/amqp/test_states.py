from __future__ import annotations

import pytest
from pamqp.commands import Connection

from gateway.amqp.states import STATE_NAMES, STEP_BY_METHOD, TRANSITIONS, State, Step, find_next, follow

CELLS = [(state, step, found) for state, row in TRANSITIONS.items() for step, found in row.items()]


def test_each_state_has_a_row_and_each_but_the_first_is_reached():
    assert list(TRANSITIONS) == list(State)
    assert {found for state, _, found in CELLS if found != state} == {*State} - {State.HEADER}


def test_connection_can_fail_and_end_in_each_state():
    for row in TRANSITIONS.values():
        assert row[Step.END] == State.CLOSED
        assert row[Step.FAIL] in {State.CLOSING, State.CLOSED}
    assert {*TRANSITIONS[State.CLOSED].values()} == {State.CLOSED}


@pytest.mark.parametrize(("state", "step", "found"), CELLS)
def test_table_is_followed(state, step, found):
    assert find_next(int(state), step) == follow(int(state), step) == found


def test_each_state_in_which_a_method_may_be_wrong_has_a_name():
    assert {*STATE_NAMES} == {*State} - {State.HEADER, State.CLOSING, State.CLOSED}


def test_methods_that_only_a_server_sends_are_no_step():
    assert {method.__name__ for method in STEP_BY_METHOD} == {
        "StartOk",
        "SecureOk",
        "TuneOk",
        "Open",
        "UpdateSecret",
        "Close",
        "CloseOk",
    }
    assert find_next(State.OPEN, STEP_BY_METHOD.get(Connection.Start)) is None

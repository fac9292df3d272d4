from __future__ import annotations

import pytest

from gateway.rocketmq.states import TRANSITIONS, State, Step, follow


def test_every_state_ends_and_is_reached():
    assert set(TRANSITIONS) == set(State)
    assert all(follow(state, Step.STOP) == State.OVER for state in State)
    reached = {state for steps in TRANSITIONS.values() for state in steps.values()}
    assert reached | {State.NEW} == set(State)


def test_a_request_is_served_only_where_it_is_known_whose_it_is():
    assert [state for state, steps in TRANSITIONS.items() if steps.get(Step.REQUEST) == State.OPEN] == [State.OPEN]
    assert follow(State.OPEN, Step.OTHER) == State.LOGIN
    assert follow(State.LOGIN, Step.REFUSE) == State.NEW


@pytest.mark.parametrize(
    ("state", "step"), [(State.LOGIN, Step.REQUEST), (State.OVER, Step.REQUEST), (State.NEW, Step.ACCEPT)]
)
def test_a_step_that_is_not_listed_is_a_fault_of_ours(state, step):
    with pytest.raises(KeyError):
        follow(state, step)

from __future__ import annotations

from functools import partial

from core.parted import OrderedMap
from gateway.admin.rosters.newer import TAKEN_A_STEP, held_still, take_newer


def _exhaust(steps):
    for _ in steps:
        pass


def test_what_is_kept_in_order_may_come_and_go_between_the_steps_of_a_look():
    there = OrderedMap()
    for number in range(3 * TAKEN_A_STEP):
        there[number] = number
    kept = []
    take = partial(take_newer, kept, there.newest_values, there.__contains__)
    _exhaust(take())
    assert kept == list(there)
    for number in range(5_000, 5_000 + 2 * TAKEN_A_STEP):
        there[number] = number
    looking = take()
    next(looking)
    del there[3 * TAKEN_A_STEP - 1]  # the last one that is known
    del there[5_000 + TAKEN_A_STEP]  # one that is about to be
    there[9_999] = 9_999
    _exhaust(looking)
    _exhaust(take())
    assert [one for one in kept if one in there] == list(there)


def test_a_look_that_ends_early_at_what_is_kept_in_order_goes_on_at_the_next():
    there = OrderedMap()
    for number in range(4 * TAKEN_A_STEP):
        there[number] = number
    kept = []
    take = partial(take_newer, kept, there.newest_values, there.__contains__)
    for steps in range(10):
        looking = take()
        for _ in range(steps):
            next(looking, None)
        looking.close()
    _exhaust(take())
    assert kept == list(there)


def test_a_walk_that_nothing_may_come_or_go_in_is_held_still_after_its_first_step():
    there = dict.fromkeys(range(3 * TAKEN_A_STEP))
    kept = []
    looking = take_newer(kept, lambda: held_still(reversed(there)), there.__contains__)
    next(looking)
    del there[0]
    there[-1] = None
    _exhaust(looking)
    assert kept == list(range(3 * TAKEN_A_STEP))

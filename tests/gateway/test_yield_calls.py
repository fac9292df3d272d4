from __future__ import annotations

import time

from gateway import yield_calls
from gateway.giving_way import GivingWay


def test_nobody_sets_the_clock_back_and_it_says_what_the_system_s_does():
    before = time.monotonic_ns()
    assert before <= yield_calls.monotonic_ns() <= time.monotonic_ns()


def test_both_forms_come_back_from_giving_up_the_core():
    yield_calls.give_up_core()
    GivingWay().give_way()

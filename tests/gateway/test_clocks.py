from __future__ import annotations

import time

from gateway import clocks
from gateway.giving_way import GivingWay
from gateway.runtime import Clock


def test_both_forms_say_the_time_of_day():
    for read in (clocks.wall_ns, Clock().read_ns):
        before = time.time_ns()
        assert before <= read() <= time.time_ns()


def test_both_forms_say_how_long_the_system_runs():
    for read in (clocks.monotonic_ns, GivingWay().read_ns):
        before = time.monotonic_ns()
        assert before <= read() <= time.monotonic_ns()

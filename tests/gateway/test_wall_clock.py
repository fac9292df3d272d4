from __future__ import annotations

import time

from gateway import wall_clock
from gateway.runtime import Clock


def test_both_forms_say_the_time_of_day():
    for read in (wall_clock.now_ns, Clock().read_ns):
        before = time.time_ns()
        assert before <= read() <= time.time_ns()

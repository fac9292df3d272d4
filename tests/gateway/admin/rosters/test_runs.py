from __future__ import annotations

import random

from gateway.admin.rosters.runs import Runs


def test_numbers_are_found_by_their_places_whatever_runs_they_make():
    draw = random.Random(5)
    for _ in range(50):
        runs, expected, next_one = Runs(), [], draw.randrange(5)
        for _ in range(draw.randrange(12)):
            count = draw.randrange(1, 6)
            runs.add(next_one, count)
            expected += range(next_one, next_one + count)
            next_one += count + draw.randrange(3)
        assert len(runs) == len(expected)
        assert [runs[place] for place in range(len(expected))] == expected

"""The store on a disk that keeps no more than POSIX says, through processes that are killed and power that is cut.

Each build runs half of the histories, and `make torture` all that it is asked for.

`make torture` runs many more, from a number of its own each time.
"""

from __future__ import annotations

import os

import pytest

from tests.support.build import IS_COMPILED
from tests.support.power_cuts import History

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
ROUNDS = os.environ.get("TORTURE_ROUNDS")
HALF = 6
SEEDS = range(FIRST, FIRST + int(ROUNDS)) if ROUNDS else range(HALF) if IS_COMPILED else range(HALF, 2 * HALF)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_said_to_be_safe_is_there_after_every_power_cut(tmp_path, seed):
    History(seed, tmp_path).run()

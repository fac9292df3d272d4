"""The store on a disk that keeps no more than POSIX says, through processes that are killed and power that is cut.

`make torture` runs many more of these histories, from a number of its own each time.
"""

from __future__ import annotations

import os

import pytest

from tests.support.power_cuts import History

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
ROUNDS = int(os.environ.get("TORTURE_ROUNDS", "12"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_what_was_said_to_be_safe_is_there_after_every_power_cut(tmp_path, seed):
    History(seed, tmp_path).run()

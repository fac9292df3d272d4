"""Each load of `make bench` once and short, at a gateway: one that breaks is not found by anything else.

Compiled, as `make bench` runs them: uncompiled the same loads take minutes.
"""

from __future__ import annotations

import dataclasses
import math
import resource

import pytest

from tests.benchmarks.scenarios.bench import Bench
from tests.benchmarks.scenarios.figures import value_of
from tests.benchmarks.scenarios.scenarios import SCENARIOS


class NoEnding:
    """Nobody tells this bench to end."""

    def check(self):
        pass


class NoPages:
    """Nothing is timed here: memory stays as it is."""

    def fill(self):
        pass


@pytest.fixture
def _many_files():
    """As `make bench` does: thousands of connections are open on both sides."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.usefixtures("_many_files")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.name for each in SCENARIOS])
def test_load_runs_and_loses_nothing(scenario):
    if missing := scenario.why_not():
        pytest.skip(missing)
    bench = Bench({"gateway": "this"}, 0.2, 1, None, NoEnding(), NoPages())
    (row,) = bench.run(dataclasses.replace(scenario, times_rounds=1, load=scenario.small or scenario.load))
    assert row.failure == ""
    assert [round_.result.lost for round_ in row.rounds] == [0]
    figures = [scenario.figure, *(floor.figure for floor in scenario.floors)]
    values = [value_of(figure, round_) for figure in figures for round_ in row.rounds]
    assert all(math.isfinite(value) and value > 0 for value in values)

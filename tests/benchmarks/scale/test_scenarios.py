"""Each load of `make bench-scale` once, at a small size, compiled as there: one that breaks is not found otherwise."""

from __future__ import annotations

import math

import pytest
from rich.console import Console

from tests.benchmarks.scale.floods import FLOODS
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scale.scenarios import SCENARIOS

SIZES = {
    "stored": 3_000,
    "light-queues": 300,
    "fan-out": 10,
    "depth": 2,
    "subscriptions": 20,
    "sessions": 20,
    "resume": 200,  # back no sooner than some messages of the live pair, 2 ms apart
    "connections": 3,
    "churn": 40,
    **{f"floods-{flood.name}": 100 for flood in FLOODS},
}
OF_PEERS = {"peer_p99_ms", "peer_max_ms", "peer_took_s"}  # which need not be installed
NOT_WHEN_SMALL = {  # what a few are too few to tell
    "further_ns",
    "exact_bytes",
    "wildcard_bytes",
    "exact_bound_bytes",
    "wildcard_bound_bytes",
    "door_bytes",
}


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.name for each in SCENARIOS])
def test_load_runs_and_finds_what_its_table_shows(scenario):
    run = Run(rounds=1, secs=0.1, console=Console(quiet=True))
    found = scenario.measure(run, SIZES[scenario.name])
    figures = {figure.name for figure in scenario.figures}
    assert set(found) - OF_PEERS == figures - OF_PEERS - NOT_WHEN_SMALL
    assert set(found) <= figures
    assert all(samples for samples in found.values())
    assert all(math.isfinite(sample) for samples in found.values() for sample in samples)

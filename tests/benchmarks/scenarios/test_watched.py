"""The load beside many queues and a console, small, and what is made of its rounds."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.benchmarks.scenarios import watched
from tests.benchmarks.scenarios.company import QUESTIONS
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.scenarios import SCENARIOS
from tests.support.elsewhere import beside_ci


def _shown(what):
    said = io.StringIO()
    Console(file=said, width=160).print(what)
    return [line for line in said.getvalue().splitlines() if "│" in line]


def test_what_a_load_loses_is_told_by_medians_without_the_first_round():
    def rounds(*rates):
        return [Result(1.0, 0, 0, rate, 0.0, rate * 2e-6) for rate in rates]

    found = {watched.ALONE: rounds(1, 100, 102), watched.BESIDE: rounds(1, 99, 100), watched.ASKED: rounds(1, 90, 91)}
    (scenario,) = [one for one in SCENARIOS if one.name == "amqp"]
    alone, beside, asked = _shown(watched.write_table(scenario, found))
    assert "met" not in alone
    assert ("0.985" in beside, "met" in beside) == (True, True)
    assert ("0.896" in asked, "missed" in asked) == (True, True)
    assert "2.00" in asked


@pytest.mark.slow
@pytest.mark.clients
@beside_ci
def test_a_load_is_measured_alone_beside_queues_and_connections_and_while_a_console_asks():
    said = io.StringIO()
    watched.run(20, 5, 0.2, 1, Console(file=said, width=160))
    text = said.getvalue()
    assert [text.count(f"│ {name} ") for name in (watched.ALONE, watched.BESIDE, watched.ASKED)] == [2, 2, 2]
    assert all(f"│ {question}" in text for question in QUESTIONS)

"""What is made of the rounds."""

from __future__ import annotations

import json
import math

import pytest

from tests.benchmarks.chosen import choose
from tests.benchmarks.scenarios.figures import (
    COLUMNS,
    Round,
    Row,
    best_peer,
    cells,
    compared,
    floor_text,
    number,
    ratio,
    spread,
)
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.report import Report, as_json, as_markdown
from tests.benchmarks.scenarios.scenarios import SCENARIOS


def scenario(name):
    return next(each for each in SCENARIOS if each.name == name)


def row(peer, *rates, is_ours=False, lost=0, **more):
    results = [
        Result(2.0, sent=2 * rate, acked=0, received=2 * rate, load_cpu_s=1.0, server_cpu_s=1.0, lost=lost, more=more)
        for rate in rates
    ]
    return Row(peer, "1.2", is_ours, [Round(result, 10_000_000) for result in results])


def test_first_round_is_thrown_away_unless_it_is_the_only_one():
    assert compared(scenario("mqtt-qos0"), row("a", 1, 30, 10, 20)).median == 20
    assert compared(scenario("mqtt-qos0"), row("a", 7)).median == 7


def test_spread_passes_over_what_is_not_a_number():
    assert spread([math.nan, 3.0, 1.0, 2.0]).low == 1.0
    assert spread([math.nan]) is None


def test_best_peer_is_neither_ours_nor_the_relay():
    rows = [row("gateway", 0, 900, is_ours=True), row("null", 0, 5_000), row("a", 0, 100), row("b", 0, 300)]
    assert best_peer(scenario("mqtt-qos0"), rows) == 300
    assert ratio(scenario("mqtt-qos0"), rows[0], rows) == 3.0


def test_peer_that_lost_messages_is_not_the_best():
    assert best_peer(scenario("mqtt-qos1"), [row("a", 0, 100), row("b", 0, 300, lost=1)]) == 100


def test_best_is_the_least_where_less_is_better():
    rows = [row("gateway", 1, is_ours=True, p99_us=50.0), row("a", 1, p99_us=100.0), row("b", 1, p99_us=200.0)]
    assert ratio(scenario("mqtt-latency"), rows[0], rows) == 0.5


def test_there_is_no_ratio_without_a_peer():
    rows = [row("gateway", 10, is_ours=True), row("null", 10)]
    assert ratio(scenario("mqtt-qos0"), rows[0], rows) is None


def test_a_row_has_a_cell_for_each_column_and_says_what_was_lost():
    made = cells(scenario("mqtt-qos0"), row("a", 0, 1_000, lost=3), [row("a", 0, 1_000)])
    assert len(made) == len(COLUMNS)
    assert made[2:5] == ("1,000 /s", "1,000–1,000", "500")
    assert made[6] == "50%"
    assert made[-1] == "LOST 3"


def test_a_server_without_a_round_shows_why():
    failed = Row("a", "1.2", is_ours=False, failure="DidNotStartError no port\nbecause of this")
    made = cells(scenario("amqp"), failed, [failed])
    assert (len(made), made[2], made[-1]) == (len(COLUMNS), "failed", "because of this")


@pytest.mark.parametrize(
    ("name", "ours", "peer", "text"),
    [
        ("mqtt-qos0", {"rate": 120}, {"rate": 100}, "1.2x met"),
        ("mqtt-qos0", {"rate": 119}, {"rate": 100}, "1.2x MISSED"),
        ("mqtt-latency", {"p99_us": 50.0}, {"p99_us": 51.0}, "1x met"),
        ("mqtt-latency", {"p99_us": 52.0}, {"p99_us": 51.0}, "1x MISSED"),
        ("mqtt-idle", {"bytes_each": 5_000.0}, {"bytes_each": 2_000.0}, "8,192 met"),
        ("mqtt-offline", {"share": 0.89}, {"share": 0.1}, "0.90 MISSED"),
        ("amqp-1000", {"rate": 5}, {"rate": 1}, ""),
    ],
)
def test_floor_is_met_or_missed(name, ours, peer, text):
    rows = [row("gateway", ours.pop("rate", 1), is_ours=True, **ours), row("a", peer.pop("rate", 1), **peer)]
    assert floor_text(scenario(name), rows[0], rows) == text
    assert floor_text(scenario(name), rows[1], rows) == ""


def test_floor_without_a_peer_to_compare_says_neither():
    rows = [row("gateway", 10, is_ours=True), row("null", 10)]
    assert floor_text(scenario("mqtt-qos0"), rows[0], rows) == "1.2x"


@pytest.mark.parametrize(("value", "text"), [(0.1234, "0.12"), (12.34, "12.3"), (1234.5, "1,234"), (9.0, "9.00")])
def test_numbers_have_three_digits_or_all_whole_ones(value, text):
    assert number(value) == text


def test_scenarios_are_found_by_pattern():
    assert [each.name for each in choose(SCENARIOS, "amqp, rocketmq-p*")] == ["amqp", "rocketmq-pull"]
    assert len(choose(SCENARIOS, "")) == len(SCENARIOS)
    with pytest.raises(ValueError, match="no scenario nosuch"):
        choose(SCENARIOS, "nosuch")


def test_report_holds_each_round_and_no_number_that_json_lacks():
    report = Report(2.0, 2, "2026-01-01T00:00:00", (0.5, 0.5, 0.5))
    report.parts.append((scenario("mqtt-qos0"), [row("a", 0, 1_000)]))
    (server,) = as_json(report)["scenarios"][0]["servers"]
    assert [each["received"] for each in server["rounds"]] == [0, 2_000]
    assert "NaN" not in json.dumps(as_json(report))
    assert "| a | 1.2 | 1,000 /s |" in as_markdown(report)

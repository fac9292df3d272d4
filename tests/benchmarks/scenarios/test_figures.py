"""What is made of the rounds."""

from __future__ import annotations

import math

import pytest

from tests.benchmarks.chosen import choose
from tests.benchmarks.figure import MET, MISSED, number
from tests.benchmarks.scenarios.figures import (
    NOT_COMPARED,
    Ratio,
    Round,
    Row,
    best_peer,
    compared,
    median_with_bounds,
    ratio,
    server_us,
    spread,
    verdicts,
)
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.scenario import DISK, P99, RATE
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
    assert compared(RATE, row("a", 1, 30, 10, 20)).median == 20
    assert compared(RATE, row("a", 7)).median == 7


def test_spread_passes_over_what_is_not_a_number():
    assert spread([math.nan, 3.0, 1.0, 2.0]).low == 1.0
    assert spread([math.nan]) is None


def test_servers_time_is_that_of_all_rounds_together():
    made = row("a", 0, 1_000, 1_000, 1_000, 1_000)
    for each, cpu_s in zip(made.rounds, (9.0, 0.0, 0.01, 0.0, 0.01), strict=True):
        each.result.server_cpu_s = cpu_s
    assert server_us(made) == pytest.approx(2.5)  # 20 ms for 8,000 messages
    assert server_us(row("a", 0, 0)) is None


def test_best_peer_is_neither_ours_nor_the_relay():
    rows = [row("gateway", 0, 900, is_ours=True), row("null", 0, 5_000), row("a", 0, 100), row("b", 0, 300)]
    assert best_peer(RATE, rows).peer == "b"
    assert ratio(RATE, rows[0], rows).median == 3.0


def test_peer_that_lost_messages_is_not_the_best():
    assert best_peer(RATE, [row("a", 0, 100), row("b", 0, 300, lost=1)]).peer == "a"


def test_best_is_the_least_where_less_is_better():
    rows = [row("gateway", 1, is_ours=True, p99_us=50.0), row("a", 1, p99_us=100.0), row("b", 1, p99_us=200.0)]
    assert ratio(P99, rows[0], rows).median == 0.5


def test_each_round_stands_beside_the_peers_turn_in_it():
    ours, peer = row("gateway", 0, 110, 550, 220, is_ours=True), row("a", 0, 100, 500, 200)
    assert ratio(RATE, ours, [ours, peer]) == Ratio(pytest.approx(1.1))  # the medians alone would say 220 / 200


def test_round_in_which_the_peer_failed_is_passed_over():
    ours, peer = row("gateway", 0, 110, 550, 220, is_ours=True), row("a", 0, 100)
    assert ratio(RATE, ours, [ours, peer]).median == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("count", "bounds"), [(5, (None, None)), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (15, (4, 12)), (99, (40, 60))]
)
def test_bounds_of_a_median_are_those_of_the_sign_test(count, bounds):
    found = median_with_bounds(range(1, count + 1))
    assert found.median == (count + 1) / 2
    assert (found.low, found.high) == bounds
    assert found.text().endswith(")") == (bounds[0] is not None)


def test_there_is_no_ratio_without_a_peer():
    rows = [row("gateway", 10, is_ours=True), row("null", 10)]
    assert ratio(RATE, rows[0], rows) is None


def test_disk_is_a_figure_only_where_it_is_measured():
    measured, bare = row("a", 0, 10), row("b", 0, 10)
    for each in measured.rounds:
        each.disk_bytes_each = 4_000.0
    assert compared(DISK, measured).median == 4
    assert compared(DISK, bare) is None


def found(name, ours, peer):
    """Return the words and texts of the floors of a scenario."""
    rows = [row("gateway", ours.pop("rate", 1), is_ours=True, **ours), row("a", peer.pop("rate", 1), **peer)]
    assert verdicts(scenario(name), rows[1], rows) == []
    return [each.text(scenario(name)) for each in verdicts(scenario(name), rows[0], rows)]


@pytest.mark.parametrize(
    ("name", "ours", "peer", "texts"),
    [
        ("mqtt-qos0", {"rate": 120}, {"rate": 100}, ["1.2x met"]),
        ("mqtt-qos0", {"rate": 119}, {"rate": 100}, ["1.2x MISSED"]),
        ("mqtt-latency", {"p50_us": 66.0, "p99_us": 76.0}, {"p50_us": 50.0, "p99_us": 51.0},
         ["p50 1.32 of 1.3x MISSED", "1.5x met"]),
        ("mqtt-latency", {"p50_us": 64.0, "p99_us": 77.0}, {"p50_us": 50.0, "p99_us": 51.0},
         ["p50 1.28 of 1.3x met", "1.5x MISSED"]),
        ("mqtt-idle", {"bytes_each": 5_000.0}, {"bytes_each": 2_000.0}, ["8,192 B met"]),
        ("mqtt-offline", {"share": 0.89}, {"share": 0.1}, ["share 0.89 of 0.9 x MISSED"]),
        ("memory", {"private_mb": 121.0}, {"private_mb": 1_600.0}, ["120 MB MISSED"]),
    ],
)  # fmt: skip
def test_each_floor_is_met_or_missed(name, ours, peer, texts):
    assert found(name, ours, peer) == texts


def test_floors_of_rate_and_of_disk_are_judged_apart():
    ours, peer = row("gateway", 0, 300, is_ours=True), row("rocketmq", 0, 100)
    for each in ours.rounds:
        each.disk_bytes_each = 8_100.0
    judged = verdicts(scenario("amqp-1000"), ours, [ours, peer])
    assert [(each.floor.figure.name, each.found.median, each.word) for each in judged] == [
        ("rate", 3.0, MET),
        ("disk_kb_each", 8.1, MISSED),
    ]


def test_floor_without_a_peer_to_compare_says_neither():
    rows = [row("gateway", 10, is_ours=True), row("null", 10)]
    assert [each.word for each in verdicts(scenario("mqtt-qos0"), rows[0], rows)] == [NOT_COMPARED]


@pytest.mark.parametrize("each", SCENARIOS, ids=lambda each: each.name)
def test_each_scenario_has_floors_with_a_title_and_a_unit(each):
    assert each.floors
    assert all(floor.figure.title and floor.figure.unit for floor in each.floors)


@pytest.mark.parametrize(("value", "text"), [(0.1234, "0.12"), (12.34, "12.3"), (1234.5, "1,234"), (9.0, "9.00")])
def test_numbers_have_three_digits_or_all_whole_ones(value, text):
    assert number(value) == text


def test_scenarios_are_found_by_pattern():
    assert [each.name for each in choose(SCENARIOS, "amqp, rocketmq-pul*")] == ["amqp", "rocketmq-pull"]
    assert len(choose(SCENARIOS, "")) == len(SCENARIOS)
    with pytest.raises(ValueError, match="no scenario nosuch"):
        choose(SCENARIOS, "nosuch")

"""What is made of the measurements."""

from __future__ import annotations

import json
import math

import pytest

from tests.benchmarks.chosen import choose
from tests.benchmarks.figure import MET, MISSED, Figure
from tests.benchmarks.scale.points import NOT_RUN, Bound, Point, judge, parse_sizes
from tests.benchmarks.scale.report import Part, Report, as_json, as_markdown, tables, write
from tests.benchmarks.scale.scenarios import SCENARIOS, choose_sizes

COST = Figure("cost", "cost of one", "µs")
POINTS = [Point(1_000, {"cost": [9.0, 1.0, 10.0]}), Point(100_000, {"cost": [12.0, 13.5, 90.0]})]


@pytest.mark.parametrize(
    ("bound", "found", "word"),
    [
        (Bound("cost", 13.5, 100_000), "13.5 µs", MET),
        (Bound("cost", 13.4, 100_000), "13.5 µs", MISSED),
        (Bound("cost", 1.5, 100_000, base=1_000), "1.50 x", MET),
        (Bound("cost", 1.4, 100_000, base=1_000), "1.50 x", MISSED),
        (Bound("cost", 50, 1_000_000), "", NOT_RUN),
        (Bound("cost", 2, 100_000, base=1), "", NOT_RUN),
    ],
)
def test_bound_is_judged_by_the_median_at_its_size(bound, found, word):
    verdict = judge(bound, COST, POINTS, "queues")
    assert (verdict.found, verdict.word) == (found, word)


def test_verdict_says_where_it_was_looked_at_and_why_that_limit():
    verdict = judge(Bound("cost", 2, 100_000, base=1_000, why="ours"), COST, POINTS, "queues")
    assert verdict.text == "cost of one at 100,000 queues, to that at 1,000"
    assert verdict.limit == "at most 2.00 x (ours)"


def test_sizes_are_a_list_or_an_end():
    assert parse_sizes("") == ([], math.inf)
    assert parse_sizes("1000, 1e5") == ([1_000, 100_000], math.inf)
    assert parse_sizes("..1e5") == ([], 100_000)
    with pytest.raises(ValueError, match="could not convert"):
        parse_sizes("many")


def test_chosen_sizes_are_those_of_the_scenario_unless_others_are_wanted():
    (fan_out,) = choose(SCENARIOS, "fan-out")
    assert choose_sizes(fan_out, [], math.inf) == list(fan_out.sizes)
    assert choose_sizes(fan_out, [], 100) == [1, 10, 100]
    assert choose_sizes(fan_out, [7], math.inf) == [7]
    with pytest.raises(ValueError, match="no scenario nosuch"):
        choose(SCENARIOS, "nosuch")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_each_bound_is_on_a_figure_and_on_sizes_that_are_measured(scenario):
    for bound in scenario.bounds:
        assert scenario.figure(bound.figure)
        assert {bound.at, scenario.sizes[0] if bound.base is None else bound.base} <= {*scenario.sizes}


def test_report_holds_each_sample_and_says_what_failed():
    part = Part(choose(SCENARIOS, "depth")[0], [Point(1, {"confirm_us": [700.0, 800.0]})], {10_000: "OSError no room"})
    report = Report(3, 2.0, "2026-01-01T00:00:00", (0.5, 0.5, 0.5), [part])
    (made,) = as_json(report)["scenarios"]
    assert made["points"][0]["samples"] == {"confirm_us": [700.0, 800.0]}
    assert "NaN" not in json.dumps(made)
    assert "| 1 |  | 750 µs |  |" in as_markdown(report)
    assert "| 10,000 | failed: OSError no room |  |" in as_markdown(report)
    assert tables(part)[0].row_count == 2


def test_files_are_the_numbers_the_table_and_a_drawing_of_each_scenario_that_was_measured(tmp_path):
    depth, stored = choose(SCENARIOS, "depth")[0], choose(SCENARIOS, "stored")[0]
    parts = [
        Part(depth, [Point(size, {"confirm_us": [700.0, 800.0], "ratio": [1.0]}) for size in (1, 10_000)]),
        Part(stored, failures={100_000: "OSError no room"}),
    ]
    report = Report(3, 2.0, "2026-01-01T00:00:00", (0.5, 0.5, 0.5), parts)
    paths = write(report, tmp_path / "out")
    assert [path.name for path in paths] == ["scale.json", "scale.md", "depth.svg"]
    assert json.loads(paths[0].read_text()) == json.loads(json.dumps(as_json(report)))
    drawing = paths[2].read_text()
    assert drawing.rstrip().endswith("</svg>")
    assert all(f"<!-- {depth.figure(name).title} [" in drawing for name in ("confirm_us", "ratio"))

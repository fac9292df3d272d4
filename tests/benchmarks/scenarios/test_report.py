"""What is shown of a run."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks.scenarios.cells import COLUMNS, cells, table_rows
from tests.benchmarks.scenarios.elsewhere import FIGURES, HEADING, VERSIONS
from tests.benchmarks.scenarios.figures import Row
from tests.benchmarks.scenarios.peers import PEERS
from tests.benchmarks.scenarios.report import Report, as_json, as_markdown, table, write
from tests.benchmarks.scenarios.scenarios import SCENARIOS
from tests.benchmarks.scenarios.test_figures import row, scenario

HERE, ELSEWHERE = COLUMNS.index("median"), COLUMNS.index(HEADING)


def made_report(name, *rows):
    report = Report(2.0, 2, "2026-01-01T00:00:00", (0.5, 0.5, 0.5))
    report.parts.append((scenario(name), list(rows)))
    return report


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


def test_what_peers_gave_elsewhere_stands_apart_with_its_version_and_changes_no_ratio():
    rows = [row("gateway", 0, 200, is_ours=True), row("mosquitto", 0, 100)]
    shown = {made[0]: made for _, made in table_rows(scenario("mqtt-qos0"), rows)}
    assert shown["mosquitto"][HERE] == "100 /s"
    assert shown["mosquitto"][ELSEWHERE] == "2.1: 705 k/s"
    assert shown["nats"][HERE] == "not run"
    assert shown["nats"][ELSEWHERE] == "2.15: 730 k/s, 1.3 µs"
    assert "2.00x" in shown["gateway"]
    assert {len(made) for made in shown.values()} == {len(COLUMNS)}


def test_each_figure_from_elsewhere_is_of_a_scenario_and_versions_are_of_peers():
    assert set(FIGURES) <= {each.name for each in SCENARIOS}
    assert set(VERSIONS) <= set(PEERS)


def test_markdown_says_that_the_column_was_not_measured():
    text = as_markdown(made_report("mqtt-qos0", row("a", 0, 1_000)))
    assert "| a | 1.2 | 1,000 /s |" in text
    assert "no result of this run" in text
    assert "not measured here" in text


def test_each_floor_is_in_the_markdown_and_in_the_json():
    rows = [
        row("gateway", 1, is_ours=True, p50_us=66.0, p99_us=50.0),
        row("a", 1, p50_us=50.0, p99_us=100.0),
    ]
    report = made_report("mqtt-latency", *rows)
    assert "| p50 1.32 of 1.3x MISSED<br>1.5x met |" in as_markdown(report)
    ours, peer = as_json(report)["scenarios"][0]["servers"]
    assert [(each["figure"], each["found"]["median"], each["verdict"]) for each in ours["floors"]] == [
        ("p50_us", pytest.approx(1.32), "MISSED"),
        ("p99_us", 0.5, "met"),
    ]
    assert peer["floors"] == []
    assert table(*report.parts[0]).row_count == 3  # and the best of those elsewhere


def test_a_scenario_of_more_and_shorter_rounds_says_so():
    assert "2 rounds of 2 s" in as_markdown(made_report("mqtt-qos0", row("a", 0, 1_000)))
    text = as_markdown(made_report("mqtt-latency", row("a", 1, p50_us=50.0, p99_us=100.0)))
    assert "50 rounds of 0.25 s, the first thrown away." in text


def test_report_holds_each_round_and_no_number_that_json_lacks():
    (made,) = as_json(made_report("mqtt-qos0", row("a", 0, 1_000)))["scenarios"]
    assert [each["received"] for each in made["servers"][0]["rounds"]] == [0, 2_000]
    assert made["elsewhere_on_two_cores"]["nats"] == "2.15: 730 k/s, 1.3 µs"
    assert "NaN" not in json.dumps(made)


def test_files_are_the_numbers_the_table_and_a_drawing_of_each_scenario(tmp_path):
    report = made_report("mqtt-qos0", row("gateway", 1_000, 1_200, is_ours=True), row("a", 500, 1_000))
    report.parts += made_report("mqtt-devices", row("a", 0, 1_000)).parts
    paths = write(report, tmp_path / "out")
    assert [path.name for path in paths] == ["bench.json", "bench.md", "bench.svg"]
    assert json.loads(paths[0].read_text()) == json.loads(json.dumps(as_json(report)))
    assert paths[1].read_text() == as_markdown(report)
    drawing = paths[2].read_text()
    assert drawing.rstrip().endswith("</svg>")
    assert all(f"<!-- {part.title} [" in drawing for part, _ in report.parts)

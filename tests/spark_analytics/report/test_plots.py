from __future__ import annotations

import itertools
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

from spark_analytics.report.plots import BLUE, draw_plots
from tests.support.fan_out_oracle import Sent, random_messages
from tests.support.reports import made_summary

pytestmark = pytest.mark.slow


def test_each_plot_is_svg_by_itself_and_the_same_each_time(tmp_path):
    summary = made_summary(random_messages(3, 500), tmp_path)
    plots = draw_plots(summary)
    assert set(plots) == {"fanout", "windows", "bytes", "devices"}
    for svg in plots.values():
        assert ET.fromstring(svg).tag.endswith("svg")
        assert svg.startswith("<svg")
    assert draw_plots(summary) == plots


def test_no_name_of_a_peer_is_drawn(tmp_path):
    hostile = Sent("$\\frac{1}{0}$<script>", "t<b>", ("%LMQ%q",), 1_790_000_000_000, 200, 10, 20)
    assert not any("script" in svg or "frac" in svg for svg in draw_plots(made_summary([hostile], tmp_path)).values())


@pytest.mark.parametrize("fanout", [0, 1, 5000])
def test_any_fan_out_can_be_drawn(tmp_path, fanout):
    queues = tuple(f"q{number}" for number in range(fanout))
    assert draw_plots(made_summary([Sent("d", "t", queues, 1_790_000_000_000, 900_000, 10, 20)], tmp_path))


@pytest.mark.parametrize(("after_ms", "shape"), [([0], "_-_"), ([0, 1000], "_-_"), ([0, 5000], "_-_-_")])
def test_windows_are_as_wide_as_they_are_and_empty_where_nothing_was_stored(tmp_path, after_ms, shape):
    start = 1_790_000_000_000
    sent = [Sent("d", "t", ("q",), start + ms, 200, 10, 20) for ms in after_ms]
    xs, ys = line_of(draw_plots(made_summary(sent, tmp_path))["windows"], BLUE)
    levels = ["-" if y == min(ys) else "_" for y in ys]
    assert "".join(level for level, _ in itertools.groupby(levels)) == shape
    assert max(xs) - min(xs) > 100


def line_of(svg: str, color: str) -> tuple[list[float], list[float]]:
    """Return the points of the first line of that colour."""
    paths = [path for path in ET.fromstring(svg).iter() if path.tag.endswith("path")]
    line = next(path for path in paths if f"stroke: {color}" in path.get("style", "") and path.get("clip-path"))
    numbers = [float(word) for word in line.get("d", "").split() if word not in "MLZz"]
    return numbers[::2], numbers[1::2]


def test_an_empty_log_has_no_plots(tmp_path):
    assert draw_plots(made_summary([], tmp_path)) == {}

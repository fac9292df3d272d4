"""The report's plots, as SVG to stand inside a page.

No name of a device, topic or queue is drawn: those are text of a peer, and stand in tables, escaped. The same
numbers give the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from spark_analytics.report.numbers import format_bytes, format_share
from spark_analytics.report.summary import Row, Summary

INK = "#1f2937"
MUTED = "#6b7280"
GRID = "#e5e7eb"
BLUE = "#2563eb"
LIGHT_BLUE = "#93c5fd"
ORANGE = "#d97706"
_WIDE_RANGE = 60  # a larger fan-out is drawn on a logarithmic axis
_STYLE: Any = {  # matplotlib types its keys one by one
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "lmq",
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.color": INK,
    "legend.frameon": False,
}
_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)


def draw_plots(summary: Summary) -> dict[str, str]:
    """Return the plots by name: `fanout`, `windows`, `bytes` and `devices`; none of an empty log."""
    if not summary.totals["messages"]:
        return {}
    painters: dict[str, tuple[float, int, Callable[[Summary, Any], None]]] = {
        "fanout": (3.1, 1, _draw_fanout),
        "windows": (4.4, 2, _draw_windows),
        "bytes": (1.9, 1, _draw_bytes),
        "devices": (2.9, 1, _draw_devices),
    }
    return {name: _to_svg(summary, *painter) for name, painter in painters.items()}


def _to_svg(summary: Summary, height: float, rows: int, paint: Callable[[Summary, Any], None]) -> str:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.6, height), layout="constrained")
        FigureCanvasSVG(figure)
        paint(summary, figure.subplots(rows, 1, sharex=rows > 1))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
    return _PROLOGUE.sub("", out.getvalue())


def _draw_fanout(summary: Summary, axes: Axes) -> None:
    fanouts = np.array([fanout for fanout, _ in summary.fanout_histogram])
    counts = np.array([count for _, count in summary.fanout_histogram])
    if fanouts[-1] > _WIDE_RANGE:
        axes.set_xscale("symlog", linthresh=10)
        axes.vlines(fanouts, 0.5, counts, color=BLUE, linewidth=1.6)
    else:
        axes.bar(fanouts, counts, width=0.72, color=BLUE)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_yscale("log")
    axes.set_ylim(0.5, counts.max() ** 1.45 * 4)  # room for the marks above the bars
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("light queues a message")
    axes.set_ylabel("messages")
    _plain_numbers(axes)
    _mark_percentiles(summary, axes)


def _mark_percentiles(summary: Summary, axes: Axes) -> None:
    by_value: dict[int, list[str]] = {}
    for name in ("p50", "p95", "p99", "max"):
        by_value.setdefault(summary.totals[f"fanout_{name}"], []).append(name)
    right_half = axes.transData.inverted().transform(axes.transAxes.transform((0.7, 0)))[0]
    for line, (value, names) in enumerate(by_value.items()):
        axes.axvline(value, color=ORANGE, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{' = '.join(names)} = {value:,}",
            (value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-4 if value > right_half else 4, -2 - 12 * line),
            textcoords="offset points",
            va="top",
            ha="right" if value > right_half else "left",
            color=ORANGE,
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )


def _draw_windows(summary: Summary, panels: Sequence[Axes]) -> None:
    rows, edges = _windows_without_gaps(summary)
    upper, lower = panels
    seconds = summary.made.window_ms / 1000
    for name, color in (("dispatches", LIGHT_BLUE), ("messages", BLUE)):
        rates = [row[name] / seconds if row else 0.0 for row in rows]
        upper.stairs(rates, edges, color=color, alpha=0.35, fill=True)
        upper.stairs(rates, edges, color=color, linewidth=1.6, label=name)
    upper.set_ylabel("per second")
    upper.set_ylim(bottom=0)
    upper.legend(loc="upper left", bbox_to_anchor=(0, 1.2), ncols=2, borderaxespad=0)
    _plain_numbers(upper)
    for name, color in (("p50", LIGHT_BLUE), ("p95", ORANGE)):
        values = [row[f"fanout_{name}"] if row else np.nan for row in rows]
        lower.stairs(values, edges, baseline=None, color=color, linewidth=1.6, label=f"fan-out {name}")
    lower.set_ylabel("light queues")
    lower.set_ylim(0, max(1, *(row["fanout_p95"] for row in summary.windows)) * 1.1)
    lower.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    lower.legend(loc="upper left", bbox_to_anchor=(0, 1.2), ncols=2, borderaxespad=0)
    locator = AutoDateLocator()
    lower.xaxis.set_major_locator(locator)
    lower.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    lower.set_xlabel("UTC")


def _windows_without_gaps(summary: Summary) -> tuple[list[Row | None], list[float]]:
    """Return each window from the first to the last, None where nothing was stored, and their edges."""
    step = timedelta(milliseconds=summary.made.window_ms)
    by_start = {row["window_start"]: row for row in summary.windows}
    first = min(by_start)
    starts = [first + step * number for number in range((max(by_start) - first) // step + 1)]
    return [by_start.get(start) for start in starts], [date2num(edge) for edge in [*starts, starts[-1] + step]]


def _draw_bytes(summary: Summary, axes: Axes) -> None:
    totals = summary.totals
    parts = (
        ("records", totals["record_bytes"] - totals["dispatch_bytes"], BLUE),
        ("lists of queues", totals["dispatch_bytes"], LIGHT_BLUE),
        ("index entries", totals["index_bytes"], ORANGE),
    )
    left = 0
    for label, size, color in parts:
        axes.barh(1, size, left=left, color=color, label=label, height=0.6)
        left += size
    axes.barh(0, totals["copied_bytes"], color=GRID, height=0.6, label="copies")
    for place, size in ((1, left), (0, totals["copied_bytes"])):
        axes.annotate(format_bytes(size), (size, place), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks([1, 0], ["stored once", "a copy in each queue"])
    axes.set_xlim(0, max(left, totals["copied_bytes"]) * 1.12)
    unit = 1024 ** int(np.log2(max(axes.get_xlim()[1], 1)) // 10)
    axes.xaxis.set_major_locator(MultipleLocator(unit * _round_step(axes.get_xlim()[1] / unit / 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_bytes(value)))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.28), ncols=4, borderaxespad=0)


def _round_step(least: float) -> float:
    power: float = 10.0 ** np.floor(np.log10(max(least, 1e-3)))
    return power * next(step for step in (1, 2, 5, 10) if step * power >= least)


def _draw_devices(summary: Summary, axes: Axes) -> None:
    counts = np.array(summary.device_dispatches, dtype=float)
    shares = np.concatenate([[0.0], np.cumsum(counts)]) / max(counts.sum(), 1.0)
    devices = np.linspace(0, 1, len(shares))
    axes.plot(devices, devices, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="all alike")
    axes.plot(devices, shares, color=BLUE, linewidth=2, label="this log")
    axes.fill_between(devices, devices, shares, color=LIGHT_BLUE, alpha=0.3, linewidth=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: format_share(value).replace(".0", "")))
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("share of the devices, busiest first")
    axes.set_ylabel("share of the dispatches")
    axes.legend(loc="lower right")


def _plain_numbers(axes: Axes) -> None:
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))

"""The three files of a run (JSON with everything, Markdown, a plot) and the table on the terminal."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from tests.benchmarks.scenarios.cells import COLUMNS, table_rows
from tests.benchmarks.scenarios.elsewhere import FIGURES, NOTE, elsewhere
from tests.benchmarks.scenarios.figures import Ratio, Round, Row, compared, ratio, value_of, verdicts
from tests.benchmarks.scenarios.scenario import Scenario

OURS, NULL, OTHERS = "#1f6f8b", "#c9c9c9", "#8a8f98"


@dataclass
class Report:
    """What ran where, and what came out."""

    secs: float
    rounds: int
    started: str
    load_before: tuple[float, float, float]
    parts: list[tuple[Scenario, list[Row]]] = field(default_factory=list)
    load_after: tuple[float, float, float] = (0.0, 0.0, 0.0)


def table(scenario: Scenario, rows: Sequence[Row]) -> Table:
    """Return the table of one scenario."""
    made = Table(*COLUMNS, title=f"{scenario.name}: {scenario.title}", title_justify="left", title_style="bold")
    for row, cells in table_rows(scenario, rows):
        is_beside = row.peer == "null" or not row.rounds
        made.add_row(*cells, style="bold" if row.is_ours else "dim" if is_beside else "")
    return made


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the servers."""
    cpu = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}


def run_as_json(started: str, secs: float, rounds: int) -> dict[str, Any]:
    """Return when, for how long and on what it was measured."""
    return {"started": started, "secs": secs, "rounds": rounds, "machine": machine()}


def as_json(report: Report) -> dict[str, Any]:
    """Return everything, also the rounds that do not count."""
    return {
        **run_as_json(report.started, report.secs, report.rounds),
        "load_average": {"before": report.load_before, "after": report.load_after},
        "scenarios": [
            {
                "name": scenario.name,
                "title": scenario.title,
                "figure": scenario.figure.name,
                "unit": scenario.figure.unit,
                "is_more_better": scenario.figure.is_more_better,
                "servers": [_row_as_json(scenario, row, rows) for row in rows],
                "elsewhere_on_two_cores": {
                    peer: elsewhere(scenario.name, peer) for peer in FIGURES.get(scenario.name, {})
                },
            }
            for scenario, rows in report.parts
        ],
    }


def _row_as_json(scenario: Scenario, row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    own, times = compared(scenario.figure, row), ratio(scenario.figure, row, rows)
    return {
        "server": row.peer,
        "version": row.version,
        "failure": row.failure,
        **({"median": own.median, "min": own.low, "max": own.high} if own else {}),
        "to_best_peer": _ratio_as_json(times),
        "floors": [
            {
                "figure": each.floor.figure.name,
                "limit": each.floor.value,
                "is_ratio": each.floor.is_ratio,
                "is_most": not each.floor.figure.is_more_better,
                "found": _ratio_as_json(each.found),
                "verdict": each.word,
            }
            for each in verdicts(scenario, row, rows)
        ],
        "rounds": [_round_as_json(scenario, each) for each in row.rounds],
    }


def _ratio_as_json(times: Ratio | None) -> dict[str, float | None] | None:
    return {"median": times.median, "low": times.low, "high": times.high} if times is not None else None


def _round_as_json(scenario: Scenario, each: Round) -> dict[str, Any]:
    result, total = each.result, each.result.total
    figures = {
        "figure": value_of(scenario.figure, each),
        "secs": result.secs,
        "sent": result.sent,
        "acked": result.acked,
        "received": result.received,
        "sent_in_all": total.sent,
        "acked_in_all": total.acked,
        "received_in_all": total.received,
        "lost": result.lost,
        "is_late": total.is_late,
        "closed": result.closed,
        "server_cpu_s": result.server_cpu_s,
        "server_us": result.server_us,
        "load_cpu_s": result.load_cpu_s,
        "private_bytes": each.private_bytes,
        "disk_bytes_each": each.disk_bytes_each,
        **result.more,
    }
    return {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in figures.items()}


def as_markdown(report: Report) -> str:
    """Return the tables."""
    where = machine()
    lines = [
        "# Benchmark",
        "",
        f"{report.started}, {where['cores']} cores of {where['cpu']}, Linux {where['kernel']}.",
        f"{report.rounds} rounds of {report.secs:g} s, the first thrown away.",
        f"Load average before {report.load_before[0]:.1f}, after {report.load_after[0]:.1f}.",
        "",
        NOTE,
    ]
    for scenario, rows in report.parts:
        lines += ["", f"## {scenario.name}", "", f"{scenario.title}.", ""]
        if scenario.times_rounds > 1:
            secs = report.secs * scenario.secs_share
            lines += [f"{report.rounds * scenario.times_rounds} rounds of {secs:g} s, the first thrown away.", ""]
        lines += [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
        for _, cells in table_rows(scenario, rows):
            lines.append(f"| {' | '.join(cell.replace('|', '/').replace(chr(10), '<br>') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def draw(report: Report, path: Path) -> None:
    """Draw bars for each scenario, with their bounds."""
    import matplotlib as mpl  # noqa: PLC0415 - half a second, and only at the end

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    heights = [len(rows) + 1.5 for _, rows in report.parts]
    figure, axes = plt.subplots(
        len(heights), 1, figsize=(9, 0.32 * sum(heights)), gridspec_kw={"height_ratios": heights}, squeeze=False
    )
    for (scenario, rows), ax in zip(report.parts, axes[:, 0], strict=True):
        _draw_one(scenario, rows, ax)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _draw_one(scenario: Scenario, rows: Sequence[Row], ax: Any) -> None:
    shown = [(row, own) for row in rows if (own := compared(scenario.figure, row)) is not None][::-1]
    medians = [own.median for _, own in shown]
    bounds = [[own.median - own.low for _, own in shown], [own.high - own.median for _, own in shown]]
    colours = [OURS if row.is_ours else NULL if row.peer == "null" else OTHERS for row, _ in shown]
    ax.barh([f"{row.peer} {row.version}" for row, _ in shown], medians, xerr=bounds, color=colours, ecolor="#444444")
    better = "more is better" if scenario.figure.is_more_better else "less is better"
    ax.set_title(f"{scenario.title} [{scenario.figure.unit}, {better}]", fontsize=9, loc="left")
    ax.tick_params(labelsize=8)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def write(report: Report, folder: Path) -> list[Path]:
    """Write the three files; return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"bench.{kind}" for kind in ("json", "md", "svg")]
    paths[0].write_text(json.dumps(as_json(report), indent=1) + "\n")
    paths[1].write_text(as_markdown(report))
    if report.parts:
        draw(report, paths[2])
    return paths

"""What a run leaves: a table for each scenario, JSON with every sample, Markdown, and a plot of cost against size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from tests.benchmarks.figure import MISSED
from tests.benchmarks.scale.points import NOT_RUN, Point, Verdict, judge
from tests.benchmarks.scale.scenarios import Scenario
from tests.benchmarks.scenarios.report import OTHERS, OURS, machine, run_as_json

COLUMNS_OF_VERDICTS = ("bound", "found", "limit", "")


@dataclass
class Part:
    """One scenario, and what was measured of it."""

    scenario: Scenario
    points: list[Point] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)  # by size

    def verdicts(self) -> list[Verdict]:
        """Return each bound beside what was found."""
        scenario = self.scenario
        return [judge(each, scenario.figure(each.figure), self.points, scenario.sizes_of) for each in scenario.bounds]

    def columns(self) -> list[str]:
        """Return the heads of the table."""
        return [self.scenario.sizes_of, *(figure.title for figure in self.scenario.figures)]

    def rows(self) -> list[list[str]]:
        """Return a row for each size."""
        figures = self.scenario.figures
        rows = [
            [f"{each.size:,}", *(figure.text(each.median(figure.name)) for figure in figures)] for each in self.points
        ]
        return rows + [
            [f"{size:,}", f"failed: {why}", *[""] * (len(figures) - 1)] for size, why in self.failures.items()
        ]


@dataclass
class Report:
    """What ran where, and what came out."""

    rounds: int
    secs: float
    started: str
    load_before: tuple[float, float, float]
    parts: list[Part] = field(default_factory=list)


def tables(part: Part) -> list[Table]:
    """Return the table of the sizes and that of the bounds."""
    title = f"{part.scenario.name}: {part.scenario.title}"
    sizes = Table(*part.columns(), title=title, title_justify="left", title_style="bold")
    for row in part.rows():
        sizes.add_row(*row)
    verdicts = Table(*COLUMNS_OF_VERDICTS)
    for each in part.verdicts():
        style = "bold red" if each.word == MISSED else "dim" if each.word == NOT_RUN else ""
        verdicts.add_row(each.text, each.found, each.limit, each.word, style=style)
    return [sizes, verdicts] if verdicts.row_count else [sizes]


def as_json(report: Report) -> dict[str, Any]:
    """Return everything."""
    return {
        **run_as_json(report.started, report.secs, report.rounds),
        "load_average_before": report.load_before,
        "scenarios": [_part_as_json(part) for part in report.parts],
    }


def _part_as_json(part: Part) -> dict[str, Any]:
    scenario = part.scenario
    return {
        "name": scenario.name,
        "title": scenario.title,
        "sizes_of": scenario.sizes_of,
        "figures": {figure.name: {"title": figure.title, "unit": figure.unit} for figure in scenario.figures},
        "points": [
            {
                "size": point.size,
                "medians": {name: point.median(name) for name in point.samples},
                "samples": {name: list(values) for name, values in point.samples.items()},
            }
            for point in part.points
        ],
        "failures": part.failures,
        "bounds": [
            {"text": each.text, "found": each.found, "limit": each.limit, "verdict": each.word}
            for each in part.verdicts()
        ],
    }


def as_markdown(report: Report) -> str:
    """Return the tables."""
    where = machine()
    lines = [
        "# Scale",
        "",
        f"{report.started}, {where['cores']} cores of {where['cpu']}, Linux {where['kernel']}; medians.",
        f"Load average before {report.load_before[0]:.1f}.",
    ]
    for part in report.parts:
        lines += ["", f"## {part.scenario.name}", "", f"{part.scenario.title}.", ""]
        lines += _markdown_table(part.columns(), part.rows())
        verdicts = [[each.text, each.found, each.limit, each.word] for each in part.verdicts()]
        lines += ["", *_markdown_table(COLUMNS_OF_VERDICTS, verdicts)] if verdicts else []
    return "\n".join(lines) + "\n"


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    table = [columns, ["---"] * len(columns), *([cell.replace("|", "/") for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in table]


def draw(part: Part, path: Path) -> None:
    """Draw each figure against the sizes, with its samples and, as a red bar, what bounds it."""
    import matplotlib as mpl  # noqa: PLC0415 - half a second, and only at the end

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    shown = [figure for figure in part.scenario.figures if any(figure.name in each.samples for each in part.points)]
    drawn, axes = plt.subplots(len(shown), 1, figsize=(8, 2.2 * len(shown)), squeeze=False, sharex=True)
    for figure, ax in zip(shown, axes[:, 0], strict=True):
        points = [each for each in part.points if figure.name in each.samples]
        for point in points:
            values = point.samples[figure.name]
            ax.plot([point.size] * len(values), values, ".", color=OTHERS, markersize=4)
        ax.plot([each.size for each in points], [each.median(figure.name) for each in points], "-o", color=OURS)
        for bound in part.scenario.bounds:
            if bound.figure == figure.name and bound.base is None:
                ax.plot([bound.at], [bound.limit], "_", color="#b3261e", markersize=18, markeredgewidth=2)
        ax.set_xscale("symlog", linthresh=1)
        ax.set_ylim(bottom=0)
        ax.set_title(f"{figure.title}{f' [{figure.unit}]' if figure.unit else ''}", fontsize=9, loc="left")
        ax.tick_params(labelsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[-1, 0].set_xlabel(part.scenario.sizes_of, fontsize=9)
    axes[-1, 0].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    drawn.tight_layout()
    drawn.savefig(path)
    plt.close(drawn)


def write(report: Report, folder: Path) -> list[Path]:
    """Write the files; return where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"scale.{kind}" for kind in ("json", "md")]
    paths[0].write_text(json.dumps(as_json(report), indent=1) + "\n")
    paths[1].write_text(as_markdown(report))
    for part in report.parts:
        if part.points:
            paths.append(folder / f"{part.scenario.name}.svg")
            draw(part, paths[-1])
    return paths

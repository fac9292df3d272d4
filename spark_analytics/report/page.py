"""The report as one HTML page that needs nothing beside it: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from spark_analytics.report.numbers import (
    format_bytes,
    format_count,
    format_duration,
    format_moment,
    format_share,
    three_figures,
    visible_name,
)
from spark_analytics.report.plots import draw_plots
from spark_analytics.report.summary import Summary

_TEMPLATE = "page.html.j2"


def write_page(summary: Summary, path: Path) -> None:
    """Write the page of `summary`."""
    path.write_text(render_page(summary), encoding="utf-8")


def render_page(summary: Summary) -> str:
    """Return the page of `summary`; names that peers chose are escaped, and their hidden characters shown."""
    extent = summary.extent
    return (
        _environment()
        .get_template(_TEMPLATE)
        .render(
            **{name: value for name, value in asdict(summary).items() if name not in {"extent", "made"}},
            extent=extent,
            made=summary.made,
            plots=draw_plots(summary),
            first_stored=_moment(extent.first_store_ms),
            last_stored=_moment(extent.last_store_ms),
            covered_ms=extent.last_store_ms - extent.first_store_ms,
            versions=_versions(summary.made.spark_version),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("spark_analytics.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": format_count,
        "size": format_bytes,
        "share": format_share,
        "figures": three_figures,
        "moment": format_moment,
        "duration": format_duration,
        "name": visible_name,
    }
    return environment


def _moment(at_ms: int) -> datetime | None:
    return datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms else None


def _versions(spark_version: str) -> str:
    try:
        own = metadata.version("lmq-gateway")
    except metadata.PackageNotFoundError:
        own = "from source"
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"LMQ Gateway {own}, Spark {spark_version}, Python {python}"

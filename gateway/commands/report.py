"""Reports that Spark makes of the log."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from gateway.commands.options import PLAIN, JsonOption
from gateway.commands.refusing import refuse

ADD_SPARK = "pip install 'lmq-gateway[spark]'"

report_cli = typer.Typer(**PLAIN, help="Spark reports over the log.")


@report_cli.command("fan-out")
def report_fan_out(
    *,
    data_dir: Annotated[str, typer.Option("--data-dir", help="The gateway's data folder; the gateway may be running.")],
    out: Annotated[str, typer.Option("--out", help="Folder for the Parquet files and index.html.")],
    skip_bad_records: Annotated[bool, typer.Option("--skip-bad-records", help="Skip damaged records.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Report, for each device, what storing once costs and what copies would have cost."""
    if find_spec("pyspark") is None:
        refuse(f"reports need Spark; add it with: {ADD_SPARK}")
    if data_dir and not Path(data_dir).is_dir():
        refuse(f"--data-dir: there is no folder {data_dir}")
    # A process of its own: the JVM's, and the analytics stand beside the gateway, not under it.
    arguments = ["fan-out", "--data-dir", data_dir, "--out", out]
    arguments += ["--skip-bad-records"] if skip_bad_records else []
    arguments += ["--json"] if as_json else []
    os.execv(sys.executable, [sys.executable, "-m", "spark_analytics", *arguments])  # noqa: S606 - no shell is meant

"""`python -m spark_analytics fan-out --data-dir DIR --out DIR`: the reports, as commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

EXIT_WRONG_USE = 2
_NEEDED = ("pyspark", "pyarrow", "numpy", "matplotlib", "jinja2")
_ADD_SPARK = "pip install 'lmq-gateway[spark]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one report; return the exit code."""
    wanted = _parser().parse_args(arguments)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        return _complain(f"reports need {', '.join(missing)}; add what is missing with: {_ADD_SPARK}")
    return _run_fan_out(wanted.data_dir, wanted.out, wanted.skip_bad_records)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m spark_analytics", description=__doc__)
    commands = parser.add_subparsers(required=True)
    fan_out = commands.add_parser("fan-out", help="what each device published, and how far it went")
    fan_out.add_argument("--data-dir", type=Path, required=True, help="the gateway's data folder; it may be running")
    fan_out.add_argument("--out", type=Path, required=True, help="folder for index.html, report.json and the tables")
    fan_out.add_argument("--skip-bad-records", action="store_true", help="leave damaged records out")
    return parser


def _run_fan_out(data_dir: Path, out: Path, skip_bad_records: bool) -> int:  # noqa: FBT001 - from the parser
    # Spark takes a second to import: only when it is there, and a report is wanted.
    from core.errors import LmqError  # noqa: PLC0415
    from spark_analytics.java import JavaNotFoundError  # noqa: PLC0415
    from spark_analytics.jobs.device_fan_out import ReportFailedError, run  # noqa: PLC0415
    from spark_analytics.options import OptionError  # noqa: PLC0415

    try:
        paths = run(data_dir, out, skip_bad_records=skip_bad_records)
    except (LmqError, OptionError, JavaNotFoundError, ReportFailedError) as error:
        return _complain(str(error))
    print(f"report: {paths.page}")  # noqa: T201 - the command's answer
    return 0


def _complain(line: str) -> int:
    print(f"lmq: {line}", file=sys.stderr)  # noqa: T201 - the command's answer
    return EXIT_WRONG_USE


if __name__ == "__main__":
    sys.exit(main())

"""`python -m spark_analytics fan-out --data-dir DIR --out DIR`: the reports, as commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

EXIT_WRONG_USE = 2
CHATTER_NAME = "spark.log"
_STDERR_FD = 2
_NEEDED = ("pyspark", "pyarrow", "numpy", "matplotlib", "jinja2")
_ADD_SPARK = "pip install 'lmq-gateway[spark]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one report; return the exit code."""
    wanted = _parser().parse_args(arguments)
    for name, folder in (("--data-dir", wanted.data_dir), ("--out", wanted.out)):
        if not folder:
            return _complain(f"{name} must name a folder; the current one is .")
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        return _complain(f"reports need {', '.join(missing)}; add what is missing with: {_ADD_SPARK}")
    paths = _run_fan_out(Path(wanted.data_dir), Path(wanted.out), wanted.skip_bad_records)
    if isinstance(paths, int):
        return paths
    told = json.dumps({name: str(path) for name, path in paths.items()}, indent=2)
    print(told if wanted.json else f"report: {paths['page']}")  # noqa: T201 - the command's answer
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m spark_analytics", description=__doc__)
    commands = parser.add_subparsers(required=True)
    fan_out = commands.add_parser("fan-out", help="what each device published, and how far it went")
    fan_out.add_argument("--data-dir", required=True, help="the gateway's data folder; it may be running")
    fan_out.add_argument("--out", required=True, help="folder for index.html, report.json and the tables")
    fan_out.add_argument("--skip-bad-records", action="store_true", help="leave damaged records out")
    fan_out.add_argument("--json", action="store_true", help="print where the report's files are as JSON")
    return parser


def _run_fan_out(data_dir: Path, out: Path, skip_bad_records: bool) -> dict[str, Path] | int:  # noqa: FBT001 - from the parser
    """Make the report; return where its files are, by what they are, or the exit code."""
    # Spark takes a second to import: only when it is there, and a report is wanted.
    from core.errors import LmqError  # noqa: PLC0415
    from spark_analytics.java import JavaNotFoundError  # noqa: PLC0415
    from spark_analytics.jobs.device_fan_out import ReportFailedError, run  # noqa: PLC0415
    from spark_analytics.options import OptionError  # noqa: PLC0415

    try:
        with _chatter_to(out / CHATTER_NAME):
            paths = run(data_dir, out, skip_bad_records=skip_bad_records)
    except ReportFailedError as error:
        return _complain(f"{error} (what Spark said is in {out / CHATTER_NAME})")
    except (LmqError, OptionError, JavaNotFoundError) as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"cannot write the report to {out}: {error.strerror}")
    return asdict(paths)


@contextmanager
def _chatter_to(path: Path) -> Iterator[None]:
    """Let what the JVM and its workers say on stderr go to a file: none of it is for the operator."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = os.dup(_STDERR_FD)
    with path.open("wb") as chatter:
        os.dup2(chatter.fileno(), _STDERR_FD)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, _STDERR_FD)
        os.close(kept)


def _complain(line: str) -> int:
    print(f"lmq: {line}", file=sys.stderr)  # noqa: T201 - the command's answer
    return EXIT_WRONG_USE


if __name__ == "__main__":
    sys.exit(main())

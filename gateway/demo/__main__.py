"""`python -m gateway.demo`: what `make demo` runs."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console

from gateway.demo.child import GatewayFailedError
from gateway.demo.play import DemoFailedError, DemoOptions, play

EXIT_WRONG = 1
_WIDTH_UNWATCHED = 130  # characters: the demonstration's widest table, where no terminal says its width


def main(
    *,
    seconds: Annotated[float, typer.Option(min=1, help="How long the devices publish.")] = 30,
    devices: Annotated[int, typer.Option(min=1, max=5000, help="How many there are.")] = 200,
    rate: Annotated[float, typer.Option(min=0.1, help="Messages a second from each.")] = 2.5,
    folder: Annotated[Path, typer.Option("--dir", help="Data goes to DIR/demo, the report to DIR/report.")] = Path(
        "data"
    ),
    report: Annotated[bool, typer.Option(help="Make the Spark report at the end.")] = True,
) -> None:
    """Run a fleet of simulated devices against a gateway, and check every count."""
    options = DemoOptions(seconds, devices, rate, folder / "demo", folder / "report", report)
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=folder / "demo-clients.log", filemode="w")  # what client libraries complain of
    try:
        is_good = uvloop.run(play(options, make_console()))
    except (DemoFailedError, GatewayFailedError) as error:
        print(f"demo: {error}", file=sys.stderr)  # noqa: T201 - the command's own answer
        raise typer.Exit(EXIT_WRONG) from error
    raise typer.Exit(0 if is_good else EXIT_WRONG)


def make_console() -> Console:
    """Return the console to write to; where nobody watches, the tables have room enough not to be broken."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_UNWATCHED)


if __name__ == "__main__":
    typer.run(main)

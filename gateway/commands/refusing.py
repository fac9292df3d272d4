"""How a command ends that cannot do what it was asked: one line on stderr, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

EXIT_WRONG_USE = 2


@contextmanager
def plain_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Turn what an operator can put right, errors of these kinds, into one line on stderr and exit code 2."""
    try:
        yield
    except kinds as error:
        refuse(str(error), error)


def refuse(text: str, error: Exception | None = None) -> NoReturn:
    """End the command with a line that says why."""
    print(f"lmq: {text}", file=sys.stderr)
    raise typer.Exit(EXIT_WRONG_USE) from error

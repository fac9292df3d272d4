"""How a command ends that cannot do what it was asked: one line on stderr, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

# Source: docs/operations.md, "Exit codes".
EXIT_WRONG_USE = 2
EXIT_NOTHING = 3  # done, but nobody got it, or less came than was to come
EXIT_MISSING = 4
EXIT_DENIED = 5
EXIT_UNREACHABLE = 6
EXIT_NOT_NOW = 7
EXIT_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


@contextmanager
def plain_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Turn what an operator can put right, errors of these kinds, into one line on stderr and exit code 2."""
    try:
        yield
    except kinds as error:
        refuse(str(error), error)


def refuse(text: str, error: BaseException | None = None, *, code: int = EXIT_WRONG_USE) -> NoReturn:
    """End the command with a line that says why."""
    print(f"lmq: {text}", file=sys.stderr)
    raise typer.Exit(code) from error

"""Runs what talks to a door: one line on stderr where it fails, a clean end at Ctrl-C and for a reader that is gone."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine

import typer

from gateway.commands.doors.traffic import LinkError
from gateway.commands.refusing import refuse


def run(work: Coroutine[None, None, None], *, interrupted: int = 0) -> None:
    """Run the work to its end; `interrupted` is the exit code at Ctrl-C."""
    try:
        asyncio.run(work)
    except LinkError as error:
        refuse(str(error), error, code=error.code)
    except BrokenPipeError:
        forget_stdout()
    except KeyboardInterrupt:
        raise typer.Exit(interrupted) from None


def forget_stdout() -> None:
    """Let nothing be written any more to a reader that is gone: the interpreter would complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""Work in a process of its own: its memory is its own, and it ends without tidying up."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

from tests.benchmarks.scenarios.server import private_bytes

R = TypeVar("R")
_SPAWN = multiprocessing.get_context("spawn")


class Worker:
    """A call that runs in another process."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._answer, theirs = _SPAWN.Pipe(duplex=False)
        self._process = _SPAWN.Process(target=_run, args=(theirs, function, arguments))
        self._process.start()
        theirs.close()

    def result(self) -> Any:
        """Wait for what the call returns; the process is gone then.

        Raises:
            RuntimeError: It raised or died.
        """
        try:
            kind, value = self._answer.recv()
        except EOFError:
            kind, value = "error", "died"
        self._process.join()
        if kind == "error":
            raise RuntimeError(f"in a process of its own: {value}")
        return value


def _run(answer: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        answer.send(("result", function(*arguments)))
    except BaseException as error:  # noqa: BLE001 - told to the waiting caller
        answer.send(("error", f"{type(error).__name__} {error}"))
    os._exit(0)  # a store that was not closed stays as a killed process leaves it


def in_own_process(function: Callable[..., R], *arguments: Any) -> R:
    """Return what `function`, a module's own, returns in a new process that then ends at once."""
    result: R = Worker(function, *arguments).result()
    return result


def new_event() -> Event:
    """Return something that both processes can wait for."""
    return _SPAWN.Event()


def own_private_bytes() -> int:
    """Return the private memory of this process."""
    return private_bytes(os.getpid())

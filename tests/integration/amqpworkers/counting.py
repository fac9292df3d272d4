"""What the workers and senders of this folder share: tasks are numbers, and each that is done is a line of a file.

`BROKER` is the server's address, `DONE` the file. A line holds the number, and the milliseconds that it came too early.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

BROKER = os.environ["BROKER"]
DONE = os.environ["DONE"]
DELAY_S = 1.0
PACE_S = 0.01
WORK_S = 0.02  # so that a kill finds tasks that were begun
PATIENCE_S = 60


def note(number: int, due: float = 0.0) -> None:
    """A task is done; `due` is the moment before which it should not be."""
    time.sleep(WORK_S)  # noqa: TID251 - the task's work
    line = f"{number} {max(0, int(1_000 * (due - time.time())))}\n"
    file = os.open(DONE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())  # one write of a few bytes, so lines of several processes stay whole
    os.close(file)


def numbers() -> Iterator[int]:
    """Give the numbers that a sender is told to send, one in a hundredth of a second."""
    first, count = int(sys.argv[2]), int(sys.argv[3])
    for number in range(first, first + count):
        yield number
        time.sleep(PACE_S)  # noqa: TID251 - a program of its own


def until_sent(send: Callable[[], object]) -> object:
    """Call until it raises nothing: the server may be away for a while."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return send()
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)  # noqa: TID251


async def until_sent_async(send: Callable[[], Awaitable[object]]) -> object:
    """Await until it raises nothing, none of it for longer than a moment."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await asyncio.wait_for(send(), 20)
        except Exception:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)


def check_result(found: object, number: int) -> None:
    """A task of the kind `result` gives twice its number."""
    if found != 2 * number:
        raise ValueError(f"result of {number}: {found}")

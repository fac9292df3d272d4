"""Reads a file or stdin beside the loop: a terminal or a pipe may be slow, and must not hold up an end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from gateway.commands.doors.traffic import LinkError
from gateway.commands.refusing import EXIT_WRONG_USE

CHUNK_BYTES = 65_536  # a pipe of Linux holds no more
CHUNKS_MAX = 16  # that wait: a megabyte
STDIN = "-"


async def read_chunks(file: str | None) -> AsyncIterator[bytes]:
    """Yield what a file has, or stdin without one, as it comes.

    Raises:
        LinkError: It cannot be read.
    """
    loop = asyncio.get_running_loop()
    came: asyncio.Queue[bytes | OSError] = asyncio.Queue(CHUNKS_MAX)

    def put(item: bytes | OSError) -> None:
        asyncio.run_coroutine_threadsafe(came.put(item), loop).result()

    def work() -> None:
        try:
            for chunk in _stdin_chunks() if file in {None, STDIN} else _file_chunks(str(file)):
                put(chunk)
            put(b"")
        except OSError as error:
            put(error)
        except RuntimeError:  # the loop has ended
            return

    # A daemon, and no executor: the end of the loop would wait for it, and so for the next line.
    threading.Thread(target=work, daemon=True).start()
    while found := await came.get():
        if isinstance(found, OSError):
            raise LinkError(f"cannot read {file}: {found.strerror}", EXIT_WRONG_USE) from found
        yield found


def _file_chunks(file: str) -> Iterator[bytes]:
    with Path(file).open("rb") as source:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk


def _stdin_chunks() -> Iterator[bytes]:
    """Give what stdin has; past its buffer, whose lock the interpreter asks for at its end."""
    try:
        descriptor = sys.stdin.fileno()
    except OSError:  # it is none of the system's
        yield sys.stdin.buffer.read()
        return
    while chunk := os.read(descriptor, CHUNK_BYTES):
        yield chunk

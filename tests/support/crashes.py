"""A process that dies between two system calls, at each of them in turn."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STEPS = ("open", "pwrite", "ftruncate", "posix_fallocate", "fdatasync", "fsync", "replace", "rename", "link", "unlink")
_DIED = 9


def _die_before(step: int) -> None:
    """Let this process end before its `step`-th system call that changes a file, from 0."""
    left = step

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if left == 0:
                os._exit(_DIED)
            left -= 1
            return real(*args, **kwargs)

        return call

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


def crash_everywhere(folder: Path, work: Callable[[], object]) -> Iterator[int]:
    """Put `folder` as it is now back, run `work` until it dies before step 0, 1, 2, ..., and give each step.

    Ends after the first run that came through, whose step is given too.
    """
    saved = folder.with_name(folder.name + ".saved")
    shutil.copytree(folder, saved)
    step = 0
    status = _DIED
    while status == _DIED:
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)
        child = os.fork()
        if child == 0:
            try:
                _die_before(step)
                work()
            except BaseException:  # noqa: BLE001  # the parent tells by the exit code
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in {0, _DIED}, "the work failed by itself"
        yield step
        step += 1

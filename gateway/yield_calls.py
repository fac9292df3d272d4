"""How a thread lets others have its core. Compiled modules take the inline C form from `yield_calls.pxd`."""

from __future__ import annotations

import os


def give_up_core() -> None:
    """Let other threads that wait for this one's core run first; back at once where none does.

    Source: sched_yield(2); `yield_task_fair` of Linux, which takes the rest of a slice from who is due one.
    """
    os.sched_yield()

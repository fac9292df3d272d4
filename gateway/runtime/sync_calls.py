"""The rounds of the flush thread that are nothing but syncs.

Compiled code takes the C form of the same name from `sync_calls.pxd`. That one holds the interpreter's lock at no time:
the thread begins as soon as it is asked to and tells the loop as soon as it is through, however busy the loop is.
"""

from __future__ import annotations

import os
import time
from array import array

# What the loop and the thread tell each other, by place in `work`; each leaves it alone in the other's turn.
STOPS = 0  # set: end instead of another round
HAS_STEPS = 1  # set: there is more to do than to sync files
ERROR = 2  # what the disk answered, an errno, or 0
TOOK_NS = 3  # how long the syncs took
COUNT = 4  # of the files
COUNT_BESIDE = 5  # of those that are synced beside all else in the round
FILES = 6  # the numbers of the files
FILES_MAX = 32  # as in sync_calls.h; a flush syncs those after it by steps
BESIDE = FILES + FILES_MAX
BESIDE_MAX = 4  # as in sync_calls.h, and in core.store.sync_plan
WORK_SLOTS = BESIDE + BESIDE_MAX


def sync_files(asked_fd: int, done_fd: int, work: array[int]) -> bool:
    """Sync files each time that it is asked to, until there is more to do.

    Those that are to be synced beside it all are begun first where the system can do that (Linux's asynchronous
    requests, of the C form), and waited for at the end: by this, or by `sync_beside` for a round with steps.

    Args:
        asked_fd: An eventfd: a round is wanted.
        done_fd: An eventfd: a round without steps is done, and without an error.
        work: Integers of 64 bits, as above.

    Returns:
        True for a round that has steps or an error, which the caller ends; False when it is to stop.
    """
    while True:
        os.eventfd_read(asked_fd)
        if work[STOPS]:
            return False
        began_ns = time.monotonic_ns()
        work[ERROR] = 0
        try:
            for fd in work[FILES : FILES + work[COUNT]]:
                os.fdatasync(fd)
        except OSError as error:
            work[ERROR] = error.errno or -1
        if not (work[HAS_STEPS] or work[ERROR]):
            sync_beside(work)
        work[TOOK_NS] = time.monotonic_ns() - began_ns
        if work[HAS_STEPS] or work[ERROR]:
            return True
        os.eventfd_write(done_fd, 1)


def sync_beside(work: array[int]) -> None:
    """Have the files that are synced beside the rest of a round on disk, or an error in `work`; on the same thread."""
    try:
        for fd in work[BESIDE : BESIDE + work[COUNT_BESIDE]]:
            os.fdatasync(fd)
    except OSError as error:
        work[ERROR] = error.errno or -1

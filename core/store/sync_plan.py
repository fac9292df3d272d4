"""What one flush has to do, fixed at its start by the owner of the files and done on another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from core.store.disk import sync_file

FDS_MAX = 1_024  # chosen: as many files as a process may have open by default; the flush thread names fewer
FDS_BESIDE_MAX = 4  # as many as the flush thread begins at a time
Step = Callable[[], Iterator[None] | None]
"""Work; where it is long, what is left of it, a slice at a time."""


class Syncable(Protocol):
    """What is flushed with the log: places, journals."""

    def begin_sync(self, plan: SyncPlan) -> None:
        """Add to `plan` what forces all that was stored so far to disk."""

    def sync_failed(self) -> None:
        """What the last plan was to cover is perhaps not on disk: it belongs to the next one as well."""


class SyncPlan:
    """Files to be synced, in their order, and then steps that need more than that, in theirs.

    Most plans are files alone, so the thread that carries one out needs nothing but their numbers.

    Args:
        fds_max: So many of them; any after those are synced by steps.
    """

    def __init__(self, fds_max: int = FDS_MAX) -> None:
        self.fds: list[int] = []
        self.fds_beside: list[int] = []
        self._fds_max = fds_max
        self._steps: list[Step] = []
        self._done = 0  # of them
        self._owners: list[Syncable] = []
        self._then: list[Callable[[], None]] = []

    def add_file(self, fd: int, owner: Syncable | None = None) -> None:
        """Sync a file, after all that the plan has so far; it stays open until the plan is done."""
        if self._steps or len(self.fds) == self._fds_max:
            self._steps.append(partial(sync_file, fd))
        else:
            self.fds.append(fd)
        if owner is not None:
            self._owners.append(owner)

    def add_files_beside(self, fds: list[int], then: Callable[[], None]) -> None:
        """Sync files at any moment before the plan is done, also beside the rest of it; `then` is called upon `end`.

        For what nothing else in the plan relies on. There is room for `FDS_BESIDE_MAX` of them.
        """
        if len(self.fds_beside) + len(fds) > FDS_BESIDE_MAX:
            for fd in fds:
                self.add_step(partial(sync_file, fd))
        else:
            self.fds_beside += fds
        self._then.append(then)

    def add_step(self, step: Step) -> None:
        """Do `step`, and all that it gives, on the thread that syncs, after all that the plan has so far."""
        self._steps.append(step)

    @property
    def has_steps(self) -> bool:
        """Whether there is more to do than to sync `fds`."""
        return bool(self._steps)

    def run_steps(self, pause: Callable[[], None] | None = None) -> None:
        """Do what is left once all of `fds` are synced; `pause` between the slices of a long step.

        Raises:
            FlushFailedError, DiskFullError, DataFolderUnusableError: What a step met; those after it were not done.
                Another call goes on with that step.
        """
        while self._done < len(self._steps):
            for _ in self._steps[self._done]() or ():
                if pause is not None:
                    pause()
            self._done += 1
        self._done = 0

    def run(self) -> None:
        """Do all of it.

        Raises:
            FlushFailedError, DiskFullError, DataFolderUnusableError: As `run_steps`.
        """
        for fd in self.fds:
            sync_file(fd)
        self.run_steps()
        for fd in self.fds_beside:
            sync_file(fd)

    def end(self) -> None:
        """Say that all of it was done."""
        then, self._then = self._then, []
        for tell in then:
            tell()

    def fail(self) -> None:
        """Say that not all of it was done."""
        for owner in self._owners:
            owner.sync_failed()


def sync_now(owner: Syncable) -> None:
    """Force all that one owner has stored so far to disk, here and now.

    Raises:
        FlushFailedError: The disk refused.
    """
    plan = SyncPlan()
    owner.begin_sync(plan)
    try:
        plan.run()
    except BaseException:
        plan.fail()
        raise
    plan.end()

"""A disk that keeps, at a power cut, what was synced, and of the rest whatever it likes: POSIX promises no more.

Watches the system calls of this process by which the store names and syncs files. What a sync of a file covered is kept
beside it; a change of a folder counts from the sync of that folder on. `cut` builds the folder that a machine finds
when the power is back: of changes that no sync covered, some names and some pages are there and others are not.

SQLite's files, which are written past Python, are taken as they are: it syncs what it commits, and their folder.
"""

from __future__ import annotations

import os
import random
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

PAGE = 4096
SQLITE = "definitions.db"

Change = tuple[Path, str, int | None]  # in a folder, what a name stands for from now on


class Kept(NamedTuple):
    """How likely it is that something is there after a power cut that no sync covered."""

    name: float
    page: float


LETTER = Kept(0, 0)  # nothing is
SOME = Kept(0.5, 0.5)
NAMES = Kept(1, 0)  # file systems with a journal of names are like that
PAGES = Kept(0, 1)


class SimulatedDisk:
    """What of `root`, which is there for certain, a power cut would leave. Use `watching` as a context."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.RLock()  # syncs come from other threads than the rest
        self._count = 0
        self._alive: dict[int, int] = {}  # number of the system's inode -> our own, which is never given again
        self._synced: dict[int, bytes] = {}
        self._dead: dict[int, bytes] = {}  # what files held that have no name any more
        self._names: dict[Path, dict[str, int]] = {}  # of each folder, what its last sync covered
        self._pending: list[list[Change]] = []  # what is not synced, in order; each of them happens whole
        self._take_in()

    def _take_in(self) -> None:
        """Take all that is there for synced."""
        for folder, folders, files in os.walk(self.root):
            names = self._names[Path(folder)] = {}
            for name in folders + files:
                path = Path(folder, name)
                names[name] = self._number(path)
                if name in files:
                    self._synced[names[name]] = path.read_bytes()

    def _number(self, path: Path) -> int:
        inode = path.lstat().st_ino
        if inode not in self._alive:
            self._count += 1
            self._alive[inode] = self._count
        return self._alive[inode]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this process's system calls."""
        hooks: dict[str, Callable[..., Any]] = {
            "open": self._open,
            "mkdir": self._mkdir,
            "rename": self._rename,
            "replace": self._rename,
            "link": self._link,
            "unlink": self._unlink,
            "fdatasync": self._sync,
            "fsync": self._sync,
        }
        self._real = {name: getattr(os, name) for name in hooks}
        for name, hook in hooks.items():
            setattr(os, name, self._alone(hook))
        try:
            yield
        finally:
            for name, real in self._real.items():
                setattr(os, name, real)

    def _alone(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return hook(*args, **kwargs)

        return call

    def _is_ours(self, path: Path) -> bool:
        return path.is_relative_to(self.root) and not path.name.startswith(SQLITE)

    def _open(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        is_new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
        fd = int(self._real["open"](path, flags, *args, **kwargs))
        path = Path(path)
        if is_new and self._is_ours(path):
            self._pending.append([(path.parent, path.name, self._number(path))])
        return fd

    def _mkdir(self, path: Any, *args: Any, **kwargs: Any) -> None:
        self._real["mkdir"](path, *args, **kwargs)
        path = Path(path)
        if self._is_ours(path):
            self._names[path] = {}
            self._pending.append([(path.parent, path.name, self._number(path))])

    def _rename(self, source: Any, target: Any) -> None:
        source, target = Path(source), Path(target)
        if not self._is_ours(source):
            self._real["rename"](source, target)
            return
        number = self._number(source)
        if target.exists() and self._number(target) != number:
            self._forget(target)
        self._real["rename"](source, target)
        if not source.exists():  # two names of one file stay
            self._pending.append([(source.parent, source.name, None), (target.parent, target.name, number)])

    def _link(self, source: Any, target: Any, **kwargs: Any) -> None:
        self._real["link"](source, target, **kwargs)
        target = Path(target)
        if self._is_ours(target):
            self._pending.append([(target.parent, target.name, self._number(target))])

    def _unlink(self, path: Any, **kwargs: Any) -> None:
        path = Path(path)
        if self._is_ours(path) and path.exists():
            self._forget(path)
            self._pending.append([(path.parent, path.name, None)])
        self._real["unlink"](path, **kwargs)

    def _forget(self, path: Path) -> None:
        """Note what a file holds that is about to lose a name."""
        status = path.stat()
        if status.st_nlink == 1:
            number = self._number(path)
            del self._alive[status.st_ino]
            self._dead[number] = path.read_bytes()

    def _sync(self, fd: int) -> None:
        """Note what a sync covers: what is there when it begins."""
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            self._sync_folder(Path(f"/proc/self/fd/{fd}").readlink())
        else:
            self.note_synced(*self.hold(fd))

    def hold(self, fd: int) -> tuple[int, bytes]:
        """Return what a file holds now, for `note_synced`."""
        status = os.fstat(fd)
        return self._alive.get(status.st_ino, 0), os.pread(fd, status.st_size, 0)

    def note_synced(self, number: int, data: bytes) -> None:
        """Note that what a file held is on disk."""
        self._synced[number] = data

    def _sync_folder(self, folder: Path) -> None:
        for changes in self._pending:
            for change in changes:
                if change[0] == folder:
                    self._apply(change)
            changes[:] = [change for change in changes if change[0] != folder]
        self._pending = [changes for changes in self._pending if changes]

    def _apply(self, change: Change) -> None:
        folder, name, number = change
        names = self._names.setdefault(folder, {})
        if number is None:
            names.pop(name, None)
        else:
            names[name] = number

    def cut(self, rng: random.Random, kept: Kept, into: Path) -> None:
        """Build what is there after a power cut now in the new folder `into`; what is seen after that means nothing."""
        with self._lock:
            self._cut(rng, kept, into)

    def _cut(self, rng: random.Random, kept: Kept, into: Path) -> None:
        for changes in self._pending:
            if rng.random() < kept.name:
                for change in changes:
                    self._apply(change)
        held = dict(self._dead)
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = Path(folder, name)
                held[self._number(path)] = path.read_bytes()
        self._build(self.root, into, held, rng, kept)

    def _build(self, folder: Path, into: Path, held: dict[int, bytes], rng: random.Random, kept: Kept) -> None:
        into.mkdir()
        for name, number in self._names[folder].items():
            if folder / name in self._names:
                self._build(folder / name, into / name, held, rng, kept)
            elif not name.startswith(SQLITE):
                (into / name).write_bytes(_tear(self._synced.get(number, b""), held[number], rng, kept))
        for path in folder.glob(f"{SQLITE}*"):
            (into / path.name).write_bytes(path.read_bytes())


def _tear(synced: bytes, held: bytes, rng: random.Random, kept: Kept) -> bytes:
    """Return what a file holds after a power cut: its size and each page are old or new."""
    if synced == held:
        return held
    size = len(held) if rng.random() < kept.page else len(synced)
    torn = bytearray(synced[:size].ljust(size, b"\0"))
    for at in range(0, size, PAGE):
        if rng.random() < kept.page:
            new = held[at : min(at + PAGE, size)]
            torn[at : at + len(new)] = new
    return bytes(torn)


def cut_power(world: Any, disk: SimulatedDisk, after: Path, wins: tuple[str, ...]) -> None:
    """Leave what was synced, and of what was not the files whose names begin as one of `wins` does; close the world."""
    live = disk.root / "data"
    disk.cut(random.Random(0), LETTER, after)
    for path in sorted(live.rglob("*")):
        name = str(path.relative_to(live))
        if path.is_file() and name.startswith(wins):
            (after / "data" / name).write_bytes(path.read_bytes())
    world.close()

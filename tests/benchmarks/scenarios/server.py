"""A server under test: started on spare ports with a folder of its own, watched from outside, stopped by its pid."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ROOT / "build" / "bench"  # on the disk that a user's data would be on, not in a memory file system
START_S = 60.0
STOP_S = 5.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE = bytes(4096)
SPARE_PORTS_FROM, SPARE_PORTS_END = 20_000, 32_768
CHANCE = random.SystemRandom()  # tests seed the other one alike in every process


class DidNotStartError(Exception):
    """The server ended, or did not listen in time."""


def spare_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on: below those that Linux gives to connections by itself."""
    ports: list[int] = []
    while len(ports) < count:
        port = CHANCE.randrange(SPARE_PORTS_FROM, SPARE_PORTS_END)
        with contextlib.suppress(OSError), socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            ports += [port] if port not in ports else []
    return ports


@dataclass
class Server:
    """One running server; `ports` by the name of the door."""

    process: subprocess.Popen[bytes]
    folder: Path
    ports: Mapping[str, int]
    beside: list[subprocess.Popen[bytes]] = field(default_factory=list)  # helpers that are not measured

    def cpu_s(self) -> float:
        """Return the CPU seconds that it has used, its children's with them."""
        return sum(_cpu_ticks(pid) for pid in family(self.process.pid)) / TICKS_PER_S

    def private_bytes(self) -> int:
        """Return the memory that is its own: files that it maps belong to the page cache."""
        return sum(private_bytes(pid) for pid in family(self.process.pid))

    def disk_bytes(self) -> int:
        """Return the bytes of those pages of its files that hold anything: space set aside is not counted."""
        walk = os.walk(self.folder)  # passes over what goes away meanwhile
        return sum(used_bytes(Path(folder, name)) for folder, _, names in walk for name in names)

    def is_up(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End it and what was started beside it, and remove its folder."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self, patience_s: float = STOP_S) -> None:
        """End it and what was started beside it; its folder stays. What takes longer than `patience_s` is killed."""
        pids = family(self.process.pid)
        for process in (self.process, *self.beside):
            process.terminate()
        for process in (self.process, *self.beside):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in (self.process, *self.beside):
            process.wait()


def make_folder(name: str) -> Path:
    """Return a new empty folder for a server."""
    FOLDERS.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=FOLDERS))


def spawn(command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a command that writes what it says to `folder`/said.log."""
    with (folder / "said.log").open("ab") as said:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=folder,
            env={**os.environ, **(env or {})},
        )


def wait_until_up(server: Server) -> None:
    """Return when each port takes connections.

    Raises:
        DidNotStartError: It ended or the time is over.
    """
    deadline = time.monotonic() + START_S
    waiting = set(server.ports.values())
    while waiting:
        waiting = {port for port in waiting if not _listens(port)}
        if not waiting:
            return
        if not server.is_up() or time.monotonic() > deadline:
            said = (server.folder / "said.log").read_text(errors="replace")[-600:]
            raise DidNotStartError(said or "said nothing")
        time.sleep(0.05)  # noqa: TID251 - nothing else runs meanwhile


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def family(pid: int) -> list[int]:
    """Return `pid` and all below it that run."""
    found, at = [pid], 0
    while at < len(found):
        for tasks in Path(f"/proc/{found[at]}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in tasks.read_text().split()]
        at += 1
    return found


def _cpu_ticks(pid: int) -> int:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])  # utime, stime
    return 0


def private_bytes(pid: int) -> int:
    """Return the memory of one process that is its own, 0 where it is gone."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
    return 0


def used_bytes(path: Path) -> int:
    """Return the bytes of those pages of a file that are not all zero; holes are not read."""
    used = at = 0
    try:
        with path.open("rb", buffering=0) as file:
            while (at := os.lseek(file.fileno(), at, os.SEEK_DATA)) >= 0:
                end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                while at < end and (chunk := os.pread(file.fileno(), min(end - at, 1 << 20), at)):
                    used += _used_in(chunk)
                    at += len(chunk)
                if at < end:
                    break
    except OSError:  # no data after `at`, or the file is gone
        pass
    return used


def _used_in(chunk: bytes) -> int:
    if not chunk.strip(b"\0"):
        return 0
    pages = (chunk[at : at + len(PAGE)] for at in range(0, len(chunk), len(PAGE)))
    return sum(len(page) for page in pages if page != PAGE[: len(page)])

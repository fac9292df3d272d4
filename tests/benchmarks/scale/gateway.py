"""A gateway whose data folder outlives the process: started, stopped and killed again and again, and timed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.scenarios import peers
from tests.benchmarks.scenarios.server import Server, make_folder, spare_ports

DOORS = ("mqtt", "amqp", "rocketmq", "namesrv", "admin")  # all of them, as a user has it
READY_MAX_S = 300.0
END_MAX_S = 60.0
STARTS_MAX = 3
POLL_S = 0.002
CLOCK_OF_PROCESS = 2  # Linux: the clock of all threads of a process, as clock_getcpuclockid(3) gives it


class PortTakenError(RuntimeError):
    """A port was spare when it was looked for, and is not any more."""


class Gateway:
    """`lmq serve` on a folder, with every door open."""

    def __init__(self, folder: Path, flush: str = "sync") -> None:
        self.folder = folder
        self._launch = peers.gateway(flush)
        self.server: Server

    def start(self) -> float:
        """Start it; return the seconds until it said `ready`; on other ports where one was taken meanwhile."""
        for _ in range(STARTS_MAX - 1):
            with contextlib.suppress(PortTakenError):
                return self._start()
        return self._start()

    def _start(self) -> float:
        ports = dict(zip(DOORS, spare_ports(len(DOORS)), strict=True))
        said = self.folder / "said.log"
        said.unlink(missing_ok=True)
        began = time.perf_counter()
        self.server = self._launch(self.folder, ports)
        self.server.ports = ports
        while not _is_ready(said):
            if not self.server.is_up() or time.perf_counter() - began > READY_MAX_S:
                self.server.end()
                text = said.read_text(errors="replace")[-600:]
                taken = "the address is in use" in text
                raise (PortTakenError if taken else RuntimeError)(f"the gateway did not start: {text}")
            time.sleep(POLL_S)  # noqa: TID251 - nothing else runs meanwhile
        return time.perf_counter() - began

    def stop(self) -> float:
        """End it as an operator does; return the seconds that it took."""
        began = time.perf_counter()
        self.server.end(END_MAX_S)
        return time.perf_counter() - began

    def kill(self) -> None:
        """End it as the kernel does when memory runs out."""
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()

    def cpu_s(self) -> float:
        """Return the CPU seconds that it has used, to the nanosecond: what is counted in ticks is too coarse here."""
        return time.clock_gettime(~self.server.process.pid << 3 | CLOCK_OF_PROCESS)

    def thread_count(self) -> int:
        """Return how many threads it has."""
        return len(list(Path(f"/proc/{self.server.process.pid}/task").iterdir()))

    def file_count(self) -> int:
        """Return how many files and folders its data are in."""
        return sum(1 for _ in (self.folder / "data").rglob("*"))


def _is_ready(said: Path) -> bool:
    return said.exists() and "ready" in said.read_text(errors="replace").splitlines()


@contextlib.contextmanager
def gateway(flush: str = "sync") -> Iterator[Gateway]:
    """Hold a gateway that is not started yet; it is ended and its folder removed in any case."""
    made = Gateway(make_folder("scale"), flush)
    try:
        yield made
    finally:
        if hasattr(made, "server"):
            made.server.end()
        shutil.rmtree(made.folder, ignore_errors=True)


def forget_pages(folder: Path) -> None:
    """Let the kernel drop what it caches of the files, as if the machine had just started."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

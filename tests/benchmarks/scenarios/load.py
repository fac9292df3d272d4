"""What every load does alike: count, warm up, measure a stretch of time, then wait until all that was sent has come."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Probe = Callable[[], float]  # the CPU seconds that the server has used so far
DRAIN_STILL_S = 0.5  # nothing came for so long: nothing more will
DRAIN_MAX_S = 10.0


@dataclass
class Count:
    """What the two sides of a run saw; `latencies_ns` only where a load stamps its messages."""

    sent: int = 0
    acked: int = 0
    received: int = 0
    closed: int = 0
    is_late: bool = False  # messages still came when the wait for them ended
    latencies_ns: list[int] = field(default_factory=list)


@dataclass
class Result:
    """Figures of one run: of its measured stretch, and the totals of the whole run."""

    secs: float
    sent: int
    acked: int
    received: int
    load_cpu_s: float
    server_cpu_s: float = 0.0
    total: Count = field(default_factory=Count)
    closed: int = 0  # connections that the server had closed by the end of the stretch
    lost: int = 0  # of those that had to arrive, how many did not
    more: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Return deliveries in a second."""
        return self.received / self.secs

    @property
    def server_us(self) -> float:
        """Return the server's CPU microseconds for each delivery."""
        return self.server_cpu_s / self.received * 1e6 if self.received else float("nan")


def no_probe() -> float:
    """Stand in where the server's CPU is not known."""
    return 0.0


async def measure(count: Count, secs: float, *, warm_s: float = 0.5, probe: Probe = no_probe) -> Result:
    """Let a running load warm up, then return what came in the next `secs`."""
    gc.collect()  # before the warm-up: it holds the load up for tens of milliseconds
    gc.disable()
    await asyncio.sleep(warm_s)
    count.latencies_ns.clear()
    before = (count.sent, count.acked, count.received)
    cpu, server_cpu, started = time.process_time(), probe(), time.perf_counter()
    await asyncio.sleep(secs)
    took = time.perf_counter() - started
    now = (count.sent, count.acked, count.received)
    load_cpu, server_cpu = time.process_time() - cpu, probe() - server_cpu
    gc.enable()
    return Result(took, *(b - a for a, b in zip(before, now, strict=True)), load_cpu, server_cpu, count, count.closed)


async def drain(count: Count, is_done: Callable[[], bool]) -> None:
    """Wait until `is_done`, or until nothing has come for a while; not for ever: then the count is late."""
    deadline = time.monotonic() + DRAIN_MAX_S
    seen, still_since = -1, time.monotonic()
    while not is_done() and time.monotonic() < deadline:
        if (now := count.received + count.acked) != seen:
            seen, still_since = now, time.monotonic()
        elif time.monotonic() - still_since > DRAIN_STILL_S:
            return
        await asyncio.sleep(0.01)
    count.is_late = not is_done()


async def in_groups(makers: list[Callable[[], object]], size: int = 100) -> list[object]:
    """Await the coroutines that `makers` make, `size` at a time; return their results in order."""
    made: list[object] = []
    for start in range(0, len(makers), size):
        made += await asyncio.gather(*(make() for make in makers[start : start + size]))  # type: ignore[arg-type]
    return made

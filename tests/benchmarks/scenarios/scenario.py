"""What a scenario is: its load, and the figures that are compared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tests.benchmarks.figure import Figure
from tests.benchmarks.scenarios.load import Result
from tests.benchmarks.scenarios.server import Server

Load = Callable[[Server, float, int], Awaitable[Result]]


RATE = Figure("rate", "rate", "/s", is_more_better=True)
SERVER_CPU = Figure("server_us", "CPU", "µs")
P50, P99 = Figure("p50_us", "p50", "µs"), Figure("p99_us", "p99", "µs")
LATE_P99 = Figure("late_p99_ms", "lateness p99", "ms")
MEMORY = Figure("private_mb", "private memory", "MB")
MEMORY_OF_ONE = Figure("bytes_each", "memory of one", "B")
DISK = Figure("disk_kb_each", "disk", "KB")
SHARE = Figure("share", "share", "x", is_more_better=True)
BESIDE_ONE = Figure("beside_one", "confirm beside that of one queue", "x")
BESIDE_PLAIN = Figure("beside_plain", "rate beside plain", "x", is_more_better=True)
BESIDE_311 = Figure("beside_311", "CPU beside 3.1.1", "x")


@dataclass(frozen=True)
class Floor:
    """What a figure of ours must reach: so many times the best peer's, or so much whatever the peers give."""

    figure: Figure
    value: float
    is_ratio: bool = True


@dataclass(frozen=True)
class Scenario:
    """A load, and which figure of a round is the one to compare."""

    name: str
    title: str
    doors: frozenset[str]
    load: Load
    figure: Figure = RATE
    floors: tuple[Floor, ...] = ()
    payload_bytes: int = 256
    measures_disk: bool = False
    is_fresh: bool = False  # a new server each round, because memory that was used once is not asked for again
    times_rounds: int = 1  # so many times the rounds that were asked for: what swings from one second to the next
    secs_share: float = 1  # of the seconds that were asked for, in each
    small: Load | None = None  # the same with fewer, where its test would take long
    without: frozenset[str] = frozenset()  # peers that cannot do it
    why_not: Callable[[], str] = str  # says what is missing on this machine; nothing where nothing is
    instead: Mapping[str, Load] = field(
        default_factory=dict
    )  # by peer: the same load at the door that a peer has in place of ours

    def load_of(self, peer: str) -> Load:
        """Return the load for a peer."""
        return self.instead.get(peer, self.load)

"""What version 5 costs beside 3.1.1: the same load in both, in turns on one server."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.scenarios import mqtt_load
from tests.benchmarks.scenarios.load import Count, Result

TURNS = (4, 5, 5, 4)  # a server that slows down or warms up slows or warms both
WARM_S = 0.25


async def run(host: str, port: int, *, secs: float, properties: bytes, **parameters: Any) -> Result:
    """Run the MQTT load in turns for twice `secs`: in version 3.1.1, and in version 5 with these properties.

    What is counted is what came in version 5; `more` holds the server's time for one as a multiple of that for
    one of 3.1.1, and the rate of that. What either lost is lost.
    """
    turns: dict[int, list[Result]] = {4: [], 5: []}
    for version in TURNS:
        of_version = properties if version == 5 else None
        made = await mqtt_load.run(host, port, secs=secs / 2, properties=of_version, warm_s=WARM_S, **parameters)
        turns[version].append(made)
    old, new = together(turns[4]), together(turns[5])
    new.lost += old.lost
    new.closed += old.closed
    new.total = total_of([*turns[4], *turns[5]])
    new.more = compare(old, new)
    return new


def together(turns: list[Result]) -> Result:
    """Return the turns of one version as one."""
    names = ("secs", "sent", "acked", "received", "load_cpu_s", "server_cpu_s")
    made = Result(*(sum(getattr(turn, name) for turn in turns) for name in names))
    made.lost, made.closed = (sum(getattr(turn, name) for turn in turns) for name in ("lost", "closed"))
    return made


def total_of(turns: list[Result]) -> Count:
    """Return what both sides of all turns saw."""
    counts = [turn.total for turn in turns]
    made = Count(*(sum(getattr(count, name) for count in counts) for name in ("sent", "acked", "received")))
    made.is_late = any(count.is_late for count in counts)
    return made


def compare(old: Result, new: Result) -> dict[str, float]:
    """Return the server's time for a message of version 5 as a multiple of that for one of 3.1.1, and 3.1.1's rate."""
    return {"beside_311": new.server_us / old.server_us if old.server_cpu_s else float("nan"), "rate_311": old.rate}

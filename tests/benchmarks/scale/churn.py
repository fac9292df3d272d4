"""Ever new names: what clients leave in the gateway's private memory that come with new ones all the time, and go.

Of each kind there are two halves. In the first one caches fill, which have little room here; what is told is how much
the second one added, for each name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmarks.scale.gateway import gateway
from tests.benchmarks.scale.points import Samples
from tests.benchmarks.scale.progress import Run
from tests.support.churn import KINDS

CACHE_VARIABLE = "LMQ_CACHE__BYTES_MAX"
CACHE_BYTES_MAX = 4 << 20
PARTS = {"clients": 4, "consumers": 10}  # these take a connection each: one in so many of the size


@contextmanager
def small_caches() -> Iterator[None]:
    """Let gateways that are started meanwhile have little room for caches."""
    before = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = str(CACHE_BYTES_MAX)
    try:
        yield
    finally:
        del os.environ[CACHE_VARIABLE]
        if before is not None:
            os.environ[CACHE_VARIABLE] = before


def measure(run: Run, size: int) -> Samples:
    """Come with `size` names of each kind, and measure what each of the second half left."""
    found: dict[str, list[float]] = {}
    for kind, come in KINDS.items():
        half = max(size // PARTS.get(kind, 1) // 2, 1)
        with small_caches(), gateway() as ours:
            ours.start()
            run.say(f"{2 * half:,} {kind}")
            ports = {**ours.server.ports, "broker": ours.server.ports["rocketmq"]}
            come(ports, range(half))
            before = ours.server.private_bytes()
            come(ports, range(half, 2 * half))
            found[f"{kind}_bytes"] = [(ours.server.private_bytes() - before) / half]
            if kind == "topics":
                found["private_mb"] = [ours.server.private_bytes() / 1e6]
    return found

"""Ever new topics, client identifiers, filters, queues and groups leave the gateway's private memory as it was."""

from __future__ import annotations

import pytest

from tests.benchmarks.scenarios.server import private_bytes
from tests.support.churn import KINDS
from tests.support.gateway import GatewayProcess

pytestmark = pytest.mark.slow

CACHE_BYTES_MAX = 1 << 20  # so that the first half fills the caches
HALVES = {"topics": 1_000, "clients": 300, "filters": 500, "queues": 300, "consumers": 100, "groups": 500}
MARGIN_BYTES = 1_500_000  # a thousand topics that were kept would take 33 MB; a thousand filters leave 0.1 MB of names


@pytest.mark.parametrize("kind", KINDS)
def test_ever_new_names_leave_private_memory_flat(tmp_path, kind):
    half, come = HALVES[kind], KINDS[kind]
    with GatewayProcess(tmp_path, env={"LMQ_CACHE__BYTES_MAX": str(CACHE_BYTES_MAX)}) as gateway:
        ports = {door: address[1] for door, address in gateway.listening.items()}
        taken = []
        for part in range(3):  # what the allocator keeps for itself may still grow in the second, what leaks in each
            come(ports, range(part * half, (part + 1) * half))
            taken.append(private_bytes(gateway.process.pid))
        assert min(taken[1] - taken[0], taken[2] - taken[1]) < MARGIN_BYTES, taken
        assert gateway.stop() == 0


def test_all_names_are_covered():
    assert HALVES.keys() == KINDS.keys()

"""What is measured at a gateway's door counts what was confirmed and what is in the queues."""

from __future__ import annotations

import pytest
from rich.console import Console

from tests.benchmarks.scale.fan_out import measure_depth, publisher_to
from tests.benchmarks.scale.gateway import gateway
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scenarios.amqp_load import ready_count


@pytest.fixture
def run():
    return Run(rounds=1, secs=0.1, console=Console(quiet=True))


@pytest.mark.slow
@pytest.mark.asyncio
async def test_each_publish_waits_for_its_confirm_and_is_in_every_queue(run):
    with gateway() as ours:
        ours.start()
        async with publisher_to(run, ours, range(3), range(1)) as peer:
            assert len(await peer.time_each(5)) == 5
            await peer.publish(40, 7)
            assert (peer.count.sent, peer.confirms.count) == (45, 45)
            every, few = await peer.time_in_turns()
        port = ours.server.ports["amqp"]
        counts = [await ready_count("127.0.0.1", port, f"bench{number:06}") for number in range(3)]
    assert counts == [45 + len(every) + len(few), 45 + len(every), 45 + len(every)]


@pytest.mark.slow
def test_depth_is_measured_beside_queues_that_held_nothing(run):
    found = measure_depth(run, 1)
    assert {name: len(samples) for name, samples in found.items()} == {"confirm_us": 1, "ratio": 1, "cpu_us": 1}
    assert all(sample > 0 for samples in found.values() for sample in samples)

"""Retained messages are counted whatever a read holds."""

from __future__ import annotations

import asyncio

import pytest

from tests.benchmarks.scenarios.load import Count
from tests.benchmarks.scenarios.mqtt_load import subscribe_packet
from tests.benchmarks.scenarios.mqtt_retained_load import FILTER, Asker, size_of

SUBACK = b"\x90\x03\x00\x01\x00"
MESSAGE = bytes(size_of(b"x"))


class Written:
    """A transport that keeps what was written."""

    def __init__(self):
        self.packets = []

    def write(self, data):
        self.packets.append(data)


@pytest.mark.parametrize("cut", range(1, 2 * len(MESSAGE) + len(SUBACK) + 1))
@pytest.mark.parametrize("place", [0, 1])
def test_it_asks_again_when_all_has_come_wherever_the_suback_is(cut, place):
    async def make():
        return Asker("a", Count(), [FILTER], 0, len(MESSAGE), 0)

    asker = asyncio.run(make())
    asker.transport, asker.messages, asker.is_running = Written(), 2, True
    asker.ready.set_result(None)
    asker.ask()
    came = [MESSAGE, MESSAGE]
    came.insert(place, SUBACK)
    whole = b"".join(came)
    for at in range(0, len(whole), cut):
        assert asker.transport.packets == [subscribe_packet([FILTER], 0)]
        asker.data_received(whole[at : at + cut])
    assert asker.count.received == 2
    assert asker.transport.packets == [subscribe_packet([FILTER], 0)] * 2
    assert asker.count.sent == 4

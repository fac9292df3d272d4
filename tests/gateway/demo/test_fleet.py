from __future__ import annotations

import pytest

pytest.importorskip("aiomqtt")

import aiomqtt

from gateway.demo.fleet import Fleet
from gateway.demo.ledger import Ledger
from gateway.demo.plan import Device

pytestmark = pytest.mark.slow


@pytest.mark.asyncio
async def test_devices_publish_at_their_pace_when_all_are_there(gateway):
    ledger = Ledger([])
    fleet = Fleet([Device(number) for number in range(5)], gateway.addresses["mqtt"], 20, ledger)
    await fleet.run(0.5)
    assert fleet.publishing.is_set()
    assert fleet.connected == 0
    by_device = [[key for key in ledger.sent if key[0] == number] for number in range(5)]
    assert all(keys == [(number, sequence) for sequence in range(len(keys))] for number, keys in enumerate(by_device))
    assert all(1 <= len(keys) <= 11 for keys in by_device)  # ten intervals may add up to just under half a second


@pytest.mark.asyncio
async def test_a_gateway_that_is_not_there_is_an_error(unused_tcp_port):
    fleet = Fleet([Device(0), Device(1)], ("127.0.0.1", unused_tcp_port), 20, Ledger([]))
    with pytest.raises(ExceptionGroup) as caught:
        await fleet.run(0.5)
    assert caught.group_contains(aiomqtt.MqttError)

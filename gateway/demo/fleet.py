"""The simulated devices: each one MQTT client that publishes at its own pace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import aiomqtt

from gateway.demo.ledger import Ledger, make_body
from gateway.demo.plan import Device

_TOGETHER = 25  # connections that are opened at the same time; chosen: 200 devices come within a second


class Fleet:
    """All devices of one run."""

    def __init__(self, devices: Sequence[Device], address: tuple[str, int], rate: float, ledger: Ledger) -> None:
        self._devices = devices
        self._address = address
        self._interval_s = 1 / rate
        self._ledger = ledger
        self._may_connect = asyncio.Semaphore(_TOGETHER)
        self.connected = 0
        self.publishing = asyncio.Event()
        """Is set when all devices are connected."""

    async def run(self, seconds: float) -> None:
        """Connect all devices, and let each publish for `seconds` after the last one is there.

        Returns when every publish is done: at QoS 1, acknowledged.
        """
        ready = asyncio.Barrier(len(self._devices))
        async with asyncio.TaskGroup() as group:
            for device in self._devices:
                group.create_task(self._run_device(device, ready, seconds))

    async def _run_device(self, device: Device, ready: asyncio.Barrier, seconds: float) -> None:
        host, port = self._address
        async with self._may_connect:
            client = aiomqtt.Client(host, port, identifier=device.client_id, timeout=30)
            await client.__aenter__()
        self.connected += 1
        try:
            await ready.wait()
            self.publishing.set()
            await self._publish(device, client, seconds)
        finally:
            await client.__aexit__(None, None, None)
            self.connected -= 1

    async def _publish(self, device: Device, client: aiomqtt.Client, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        due = started + self._interval_s * device.number / len(self._devices)
        sequence = 0
        while due < started + seconds:
            await asyncio.sleep(max(0.0, due - loop.time()))
            kind, topic = device.kind(sequence), device.topic(sequence)
            key = (device.number, sequence)
            body = make_body(key, kind, time.time_ns() // 1_000_000)
            self._ledger.add_sent(key, topic, body)
            await client.publish(topic, body, qos=device.qos(sequence))
            sequence += 1
            due = max(due + self._interval_s, loop.time())  # a slow machine publishes less, not in bursts

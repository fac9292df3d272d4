"""A gateway on a simulated disk: what it acknowledged to MQTT publishers is there after each power cut."""

from __future__ import annotations

import asyncio
import random

import pytest

import gateway.runtime.flush_thread
from gateway.runtime.flush_thread import FlushThread
from tests.support import mqtt
from tests.support.gateway import running_gateway
from tests.support.simulated_disk import LETTER, NAMES, SOME, SimulatedDisk
from tests.support.store import read_queue

pytestmark = pytest.mark.slow

IS_COMPILED = not str(gateway.runtime.flush_thread.__file__).endswith(".py")
LIVES = 5
TOPIC_KEY = b"LMQ_PARENT/0"


class Watched:
    """The store as a compiled flush thread sees it, which syncs past Python: a flush covers what was there before."""

    def __init__(self, store, disk):
        self._store = store
        self._disk = disk
        self._covered = []

    def begin_flush(self, *, is_all, fds_max):
        flush = self._store.begin_flush(is_all=is_all, fds_max=fds_max)
        self._covered = [self._disk.hold(fd) for fd in flush.fds]
        return flush

    def end_flush(self):
        for held in self._covered:
            self._disk.note_synced(*held)
        self._store.end_flush()

    def fail_flush(self, *, is_refused):
        self._store.fail_flush(is_refused=is_refused)


class Publisher:
    """Sends at QoS 1 over a socket; `acknowledged` holds the bodies of what was."""

    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer
        self._sent = {}
        self._data = b""
        self.acknowledged = set()

    @classmethod
    async def connect(cls, address):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(mqtt.connect(b"publisher"))
        assert await reader.readexactly(4) == mqtt.connack()
        return cls(reader, writer)

    def send(self, bodies):
        for body in bodies:
            packet_id = len(self._sent) + 1
            self._sent[packet_id] = body
            self._writer.write(mqtt.publish(b"t/%d" % (packet_id % 3), body, qos=1, packet_id=packet_id))

    async def take_acks(self, count):
        """Return when so many are acknowledged."""
        while len(self.acknowledged) < count:
            self._data += await self._reader.read(1 << 16)
            while len(self._data) >= 4:
                packet, self._data = self._data[:4], self._data[4:]
                assert packet[:2] == b"\x40\x02"
                self.acknowledged.add(self._sent[int.from_bytes(packet[2:], "big")])

    def close(self):
        self._writer.close()


async def live(disk, rng, life, monkeypatch, expected):
    """Run a gateway until a power cut; return the bodies that it acknowledged, and those that may be there too."""
    if IS_COMPILED:
        make = lambda store, *rest: FlushThread(Watched(store, disk), *rest)  # noqa: E731
        monkeypatch.setattr("gateway.app.FlushThread", make)
    async with running_gateway(disk.root / "data") as gateway_:
        found = [body for _, body in read_queue(gateway_.store, TOPIC_KEY)]
        assert expected <= set(found)
        publisher = await Publisher.connect(gateway_.listening["mqtt"])
        for turn in range(rng.choice((1, 1, 2, 4))):
            count = rng.choice((1, 5, 40))
            bodies = [b"%d.%d.%d" % (life, turn, k) + bytes(rng.choice((0, 3_000, 60_000))) for k in range(count)]
            before = len(publisher.acknowledged)
            publisher.send(bodies)
            await publisher.take_acks(before + rng.randint(1, count) if rng.random() < 0.3 else before + count)
        acknowledged = set(publisher.acknowledged)
        disk.cut(rng, rng.choice((LETTER, LETTER, NAMES, SOME)), disk.root.parent / str(life + 1))
        publisher.close()
    return acknowledged | expected


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(6))
async def test_every_acknowledged_message_is_there_after_a_power_cut(tmp_path, seed, monkeypatch):
    rng = random.Random(seed)
    expected = set()
    (tmp_path / "0").mkdir()
    for life in range(LIVES):
        disk = SimulatedDisk(tmp_path / str(life))
        with disk.watching():
            expected = await live(disk, rng, life, monkeypatch, expected)
    async with running_gateway(tmp_path / str(LIVES) / "data") as gateway_:
        assert expected <= {body for _, body in read_queue(gateway_.store, TOPIC_KEY)}

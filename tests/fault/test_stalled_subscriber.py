"""A subscriber that stops reading costs its place in the log, and nobody else anything."""

from __future__ import annotations

import select
import shutil
import time
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support import mqtt
from tests.support.gateway import DOORS, GatewayProcess
from tests.support.mqtt_client import MqttClient

TOPIC = b"stream/video"
FILTER = b"stream/#"
BODY_BYTES = 64 * 1024
FILLER = bytes(range(256)) * 256
NUMBER_BYTES = 8
WARM_COUNT = 4_096  # 256 MiB, until buffers and allocator have found their size
WARM_ROUNDS_MAX = 12
COUNT = 16_384  # 1 GiB
LAG_COUNT_MAX = 1_000
AHEAD_COUNT_MAX = LAG_COUNT_MAX // 2  # by so much the publisher is ahead of readers, so they lose nothing
STALLED_BYTES_MAX = 2_000_000
WAIT_S = 60


class Publisher:
    """Sends numbered messages at QoS 1, as many as it is allowed to and as the gateway takes."""

    def __init__(self, client):
        self.client = client
        self.sock = client.sock
        self.sock.setblocking(False)
        self.sent_count = 0
        self.acked_count = 0
        self._left = memoryview(b"")
        self._acks = b""

    def write(self, until):
        if not self._left and self.sent_count < until:
            body = self.sent_count.to_bytes(NUMBER_BYTES, "big") + FILLER[NUMBER_BYTES:]
            packet_id = self.sent_count % 65_535 + 1
            self._left = memoryview(mqtt.publish(TOPIC, body, qos=1, packet_id=packet_id))
            self.sent_count += 1
        self._left = self._left[self.sock.send(self._left) :]

    def read(self):
        self._acks += self.sock.recv(1 << 16)
        self.acked_count += len(self._acks) // 4
        self._acks = self._acks[len(self._acks) // 4 * 4 :]

    def has_more(self, until):
        return bool(self._left) or self.sent_count < until


class Reader:
    """Takes numbered messages, checks each, and acknowledges those at QoS 1."""

    def __init__(self, client, qos, next_number):
        self.sock = client.sock
        self.sock.setblocking(True)
        self.qos = qos
        self.count = 0
        self.missing_count = 0
        self.next_number = next_number
        self._data = bytearray(client.tail)
        self._body_at = 1 + 3 + 2 + len(TOPIC) + 2 * qos

    def read(self):
        data = self._data
        got = self.sock.recv(1 << 18)
        assert got, "the gateway closed a subscriber's connection"
        data += got
        size = self._body_at + BODY_BYTES
        acks = bytearray()
        pos = 0
        while pos + size <= len(data):
            head, body = bytes(data[pos : pos + self._body_at]), bytes(data[pos + self._body_at : pos + size])
            self._check(head, body)
            acks += b"\x40\x02" + head[-2:]
            pos += size
        del data[:pos]
        if self.qos and acks:
            self.sock.sendall(acks)

    def _check(self, head, body):
        assert head[0] == 0x30 | self.qos << 1
        assert head[6 : 6 + len(TOPIC)] == TOPIC
        number = int.from_bytes(body[:NUMBER_BYTES], "big")
        assert body[NUMBER_BYTES:] == FILLER[NUMBER_BYTES:]
        assert number >= self.next_number
        self.missing_count += number - self.next_number
        self.next_number = number + 1
        self.count += 1


class Memory:
    """The private memory of a process: what it has for itself, without the pages of its files."""

    def __init__(self, pid):
        self._status = Path(f"/proc/{pid}/status")
        self._names = ["RssAnon:", "RssShmem:"]
        if self._read("RssShmem:") > STALLED_BYTES_MAX:  # the data folder is in memory, and its pages count there
            self._names = ["RssAnon:"]
        self.peak = 0

    def _read(self, name):
        lines = [line.split() for line in self._status.read_text().splitlines()]
        return next(int(words[1]) * 1024 for words in lines if words[0] == name)

    def sample(self):
        self.peak = max(self.peak, sum(self._read(name) for name in self._names))


def stream(publisher, readers, until, memory):
    """Publish until message `until`, never far ahead of the readers; end when all have all."""
    deadline = time.monotonic() + WAIT_S
    sampled_at = 0
    while publisher.acked_count < until or any(reader.next_number < until for reader in readers):
        assert time.monotonic() < deadline, [publisher.acked_count, *[reader.next_number for reader in readers]]
        allowed = min(until, min(reader.next_number for reader in readers) + AHEAD_COUNT_MAX)
        writers = [publisher] if publisher.has_more(allowed) else []
        readable, writable, _ = select.select(
            [publisher.sock, *[reader.sock for reader in readers]], [one.sock for one in writers], [], 1
        )
        for one in [publisher, *readers]:
            if one.sock in readable:
                one.read()
        if writable:
            publisher.write(allowed)
        if publisher.acked_count >= sampled_at + 128:
            sampled_at = publisher.acked_count
            memory.sample()


def warm_up(publisher, readers, memory):
    """Publish until two rounds in a row add next to nothing to the peak of memory; return the next message's number.

    After one such round the largest of the buffers may still be to come, 3 MB.
    """
    quiet_rounds = 0
    for until in range(WARM_COUNT, WARM_COUNT * WARM_ROUNDS_MAX, WARM_COUNT):
        before = memory.peak
        stream(publisher, readers, until, memory)
        quiet_rounds = quiet_rounds + 1 if memory.peak - before < STALLED_BYTES_MAX // 8 else 0
        if quiet_rounds == 2:
            return until
    raise AssertionError(f"memory grows although all read: {memory.peak}")


def read_until(reader, until):
    """Read on until message `until` is the next one."""
    deadline = time.monotonic() + WAIT_S
    while reader.next_number < until:
        assert time.monotonic() < deadline, reader.next_number
        if select.select([reader.sock], [], [], 1)[0]:
            reader.read()


def dropped_count(gateway):
    host, port = gateway.address("admin")
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=WAIT_S) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    labels = {"door": "mqtt", "reason": "slow_subscriber"}
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "lmq_dropped_total" and sample.labels == labels
    )


@pytest.fixture
def gateway(tmp_path):
    env = {"LMQ_STORE__SEGMENT_BYTES": str(64 << 20), "LMQ_MQTT__LAG_COUNT_MAX": str(LAG_COUNT_MAX)}
    with GatewayProcess(tmp_path / "data", "--flush", "async", env=env, doors=DOORS) as process:
        yield process
    shutil.rmtree(tmp_path / "data")  # more than a gigabyte


def subscribe(gateway, client_id, qos, *, clean=True):
    client = MqttClient(gateway.address("mqtt"), client_id, clean=clean, keep_alive_s=0)
    client.send(mqtt.subscribe(1, (FILTER, qos)))
    assert client.read(1) == [mqtt.suback(1, qos)]
    return client


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_stalled_subscribers_of_a_gigabyte_cost_little_and_the_others_get_everything(gateway):
    with (
        MqttClient(gateway.address("mqtt"), b"publisher", clean=True, keep_alive_s=0) as publishing,
        subscribe(gateway, b"healthy-0", 0) as healthy_0,
        subscribe(gateway, b"healthy-1", 1) as healthy_1,
    ):
        publisher = Publisher(publishing)
        healthy = [Reader(healthy_0, 0, 0), Reader(healthy_1, 1, 0)]
        memory = Memory(gateway.process.pid)
        start = warm_up(publisher, healthy, memory)
        end = start + COUNT
        before = memory.peak
        with (
            subscribe(gateway, b"stalled-0", 0) as stalled_0,
            subscribe(gateway, b"stalled-1", 1, clean=False) as stalled_1,
        ):
            stream(publisher, healthy, end, memory)
            assert memory.peak - before < 2 * STALLED_BYTES_MAX
            assert [(reader.count, reader.missing_count) for reader in healthy] == [(end, 0), (end, 0)]
            late_0, late_1 = Reader(stalled_0, 0, start), Reader(stalled_1, 1, start)
            read_until(late_0, end)
            read_until(late_1, end)
            assert (late_1.count, late_1.missing_count) == (COUNT, 0)
            assert late_0.missing_count >= COUNT - LAG_COUNT_MAX - AHEAD_COUNT_MAX
            assert dropped_count(gateway) == late_0.missing_count
            assert late_0.count + late_0.missing_count == COUNT

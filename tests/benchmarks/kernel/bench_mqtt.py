"""Print what MQTT costs without system calls, in ns: python tests/benchmarks/kernel/bench_mqtt.py [BODY_BYTES]."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from core.message import FLAG_MARK, StoredBatch
from core.settings import StoreSettings
from gateway.mqtt import codec
from gateway.mqtt.codec import PacketReader
from gateway.mqtt.columns import RunColumns
from gateway.mqtt.publish_encoder import PublishEncoder
from gateway.net.protocol import Transport
from tests.support import mqtt
from tests.support.mqtt_door import World

TOPIC = b"site/1/device/22/temperature"
READ_MESSAGES = 900  # about what one read of a busy socket brings
LONE_MESSAGES = 100  # between two looks at the clock
ROUND_S = 0.02
ROUNDS = 8


def say(name, nanoseconds):
    sys.stdout.write(f"{name:<60}{nanoseconds:>10,.1f} ns\n")


def best(call, count, prepare=None):
    """Return nanoseconds of processor time for each of `count` units of `call`, the best of the rounds."""
    found = []
    for _ in range(ROUNDS):
        if prepare is not None:
            prepare()
        calls = 0
        start = time.thread_time()
        while (took := time.thread_time() - start) < ROUND_S:
            call()
            calls += 1
        found.append(took / calls / count * 1e9)
    return min(found)


def bench_codec(body_bytes):
    one = mqtt.publish(TOPIC, b"x" * body_bytes)
    data = one * READ_MESSAGES
    reader = PacketReader(RunColumns(), 1 << 22)

    def decode():
        reader.receive_data(data)
        while reader.read_next() != codec.MORE:
            pass

    say(f"decode a PUBLISH of {body_bytes} B", best(decode, READ_MESSAGES))
    batch = StoredBatch(READ_MESSAGES)
    batch.buf = data
    batch.count = READ_MESSAGES
    for i in range(READ_MESSAGES):
        batch.body_end[i] = (i + 1) * len(one)
        batch.body_start[i] = batch.topic_end[i] = batch.body_end[i] - body_bytes
        batch.topic_start[i] = batch.topic_end[i] - len(TOPIC)
        batch.flag[i] = FLAG_MARK | 1
    encoder = PublishEncoder()
    say("encode it at QoS 0", best(lambda: encoder.encode(batch, 0, 1), READ_MESSAGES))
    say("encode it at QoS 1", best(lambda: encoder.encode(batch, 1, 1), READ_MESSAGES))
    say("number it for another subscriber", best(lambda: encoder.renumber(7), READ_MESSAGES))
    acks = b"".join(mqtt.puback(i + 1) for i in range(READ_MESSAGES))

    def decode_acks():
        reader.receive_data(acks)
        while reader.read_next() != codec.MORE:
            pass

    say("decode a PUBACK", best(decode_acks, READ_MESSAGES))


class NullTransport(Transport):
    """A socket that takes everything and keeps nothing but the last packets."""

    def __init__(self, transport):
        super().__init__()
        self.peer_host = transport.peer_host
        self.last = b""
        self.count = 0
        self.wants_turn = False

    def write(self, data):
        self.last = data
        self.count += len(data)

    def pause_reading(self):
        pass


def make_subscriber(world, number, qos):
    peer = world.client(b"s%d" % number, (b"site/+/device/#", qos))
    peer.handler.transport = peer.transport = peer.handler.session.outlet = NullTransport(peer.transport)
    return peer


def bench_path(body_bytes, qos, data_dir):
    settings = StoreSettings(segment_bytes=256 * 1024 * 1024)
    world = World(data_dir, is_sync=False, store_settings=settings, inflight_max=32_767)
    publisher = world.client(b"p")
    publisher.handler.transport = NullTransport(publisher.transport)
    one = mqtt.publish(TOPIC, b"x" * body_bytes, qos=qos, packet_id=1)
    data = one * READ_MESSAGES
    subscribers = []
    acks = b"".join(mqtt.puback(i) for i in range(1, 65_536)) * 2
    acked = 0

    def move():
        nonlocal acked
        publisher.handler.on_data(data, world.now_ms)
        world.turn()
        if qos:
            chunk = acks[4 * acked : 4 * (acked + READ_MESSAGES)]
            acked = (acked + READ_MESSAGES) % 65_535
            for peer in subscribers:
                peer.handler.on_data(chunk, world.now_ms)
            world.turn()

    def prepare():
        for _ in range(8):
            world.store.prepare()

    before = 0.0
    for count in (0, 1, 2, 11):
        while len(subscribers) < count:
            subscribers.append(make_subscriber(world, len(subscribers), qos))
            if qos:  # all start with the same packet identifier
                subscribers[-1].handler.session.window = None
                for peer in subscribers:
                    peer.handler.session.open_window(32_767).head = peer.handler.session.window.tail = 0
        acked = 0
        took = best(move, READ_MESSAGES, prepare)
        say(f"QoS {qos}, bytes in to bytes out, {count} subscribers", took)
        if count > 1:
            say("  for each further subscriber", (took - before) / (9 if count > 2 else 1))
        before = took
    world.close()


def bench_lone(body_bytes, qos, data_dir):
    """One message a read: what a batch costs besides its messages; at QoS 1 with its acknowledgement."""
    world = World(data_dir, is_sync=False, store_settings=StoreSettings(), inflight_max=1_000)
    publisher = world.client(b"p")
    publisher.handler.transport = NullTransport(publisher.transport)
    peer = make_subscriber(world, 0, qos)
    data = mqtt.publish(TOPIC, b"x" * body_bytes, qos=qos, packet_id=1)
    acks = [mqtt.puback(i) for i in range(1, 65_536)]
    sent = 0

    def move():
        nonlocal sent
        for _ in range(LONE_MESSAGES):
            publisher.handler.on_data(data, world.now_ms)
            world.turn()
            if qos:
                peer.handler.on_data(acks[sent % 65_535], world.now_ms)
                world.turn()
                sent += 1

    say(f"QoS {qos}, bytes in to bytes out, a lone message", best(move, LONE_MESSAGES, world.store.prepare))
    world.close()


def main():
    body_bytes = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    build = "compiled" if not codec.__file__.endswith(".py") else "not compiled"
    sys.stdout.write(f"{build}, bodies of {body_bytes} B, {READ_MESSAGES} messages a read\n")
    bench_codec(body_bytes)
    for qos in (0, 1):
        with tempfile.TemporaryDirectory() as data_dir:
            bench_path(body_bytes, qos, Path(data_dir))
        with tempfile.TemporaryDirectory() as data_dir:
            bench_lone(body_bytes, qos, Path(data_dir))


if __name__ == "__main__":
    main()

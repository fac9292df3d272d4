"""Print what an AMQP message costs, in ns: python tests/benchmarks/kernel/bench_amqp.py."""

from __future__ import annotations

import itertools
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from pamqp.commands import Basic, Exchange, Queue

from core.lmq.topic_space import routing_key_from_topic
from core.properties import decode_properties
from core.settings import StoreSettings
from gateway.amqp import codec
from gateway.amqp.codec import PublishCutter
from gateway.amqp.delivery_codec import DeliveryEncoder
from gateway.amqp.unacked import UnackedRing
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.mqtt_door import NOW_MS

COUNT = 200
ROUNDS = 20
WAY_ROUNDS = 200
BODY = b"x" * 256
PAYLOAD_MAX = 131_064
BODY_MAX = 1 << 24
ORIGIN = {b"LMQ_PROTOCOL": b"amqp", b"LMQ_CLIENT": b"bench", b"LMQ_USER": b"guest"}
DISPATCH = {b"INNER_MULTI_DISPATCH": b"%LMQ%amqp%|2f%q", b"INNER_MULTI_QUEUE_OFFSET": b"1", b"__CRC32#": b"1"}


def say(name, nanoseconds):
    sys.stdout.write(f"{name:<60}{nanoseconds:>10,.0f} ns\n")


def best(work, count):
    """Return the ns of the best of several rounds, divided by `count`."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        work()
        found.append(time.perf_counter_ns() - began)
    return min(found) / count


def publishes(**properties):
    return b"".join(
        [amqp.publish(1, BODY, key="q", **{name: make(i) for name, make in properties.items()}) for i in range(COUNT)]
    )


def bench_cut():
    cutter = PublishCutter(COUNT)
    for name, data in (
        ("cut a publish of 256 B, the same properties", publishes(delivery_mode=lambda _: 2)),
        ("... a message id each", publishes(delivery_mode=lambda _: 2, message_id=str)),
        ("... two headers each", publishes(headers=lambda i: {"device": f"d{i}", "n": i})),
    ):
        end = len(data)
        say(name, best(lambda data=data, end=end: cutter.cut(data, 0, end, 1, PAYLOAD_MAX, BODY_MAX, b"guest"), COUNT))


def bench_deliver():
    encoder = DeliveryEncoder(routing_key_from_topic)
    cutter = PublishCutter(1)
    cutter.add(b"\x00\x01q", 0, amqp.block(delivery_mode=2), b"", b"guest")
    extra = decode_properties(bytes(cutter.batch.extra[: cutter.batch.extra_end[0]]))
    topic = {b"LMQ_TOPIC": b"site/7/temperature"}
    for name, properties in (
        ("deliver a message of 256 B that came by AMQP", topic | ORIGIN | extra | DISPATCH),
        ("... by MQTT", topic | ORIGIN | {b"LMQ_PROTOCOL": b"mqtt"} | DISPATCH),
    ):
        stored = amqp.stored([(properties, BODY)] * COUNT)
        say(
            name,
            best(lambda stored=stored: encoder.encode_deliveries(stored, 1, b"\x03tag", 1, PAYLOAD_MAX), COUNT),
        )


def bench_acknowledge():
    ring = UnackedRing()
    stored = amqp.stored([({}, b"")] * COUNT)
    frames = struct.Struct(">BHIIQBB")

    def work():
        first = ring.push(stored, 0)
        data = b"".join([frames.pack(1, 1, 13, Basic.Ack.index, first + i, 0, 0xCE) for i in range(COUNT)])
        began = time.perf_counter_ns()
        ring.cut_settles(data, 0, len(data), 1)
        return time.perf_counter_ns() - began

    say("take an acknowledgement", min(work() for _ in range(ROUNDS)) / COUNT)


def bench_way(queues):
    """From bytes in to bytes out: published, confirmed, stored, delivered, acknowledged; no system call is in it."""
    with tempfile.TemporaryDirectory() as folder:
        world = AmqpWorld(Path(folder), is_sync=False, store_settings=StoreSettings())
        publisher = world.client(channels=1).confirms()
        readers = [world.client() for _ in range(queues)]
        publisher.call(Exchange.Declare(exchange="x", exchange_type="fanout"))
        for i, reader in enumerate(readers):
            reader.declare(f"q{i}")
            reader.call(Queue.Bind(queue=f"q{i}", exchange="x"))
            reader.consume(f"q{i}").take()
        data = b"".join([amqp.publish(1, BODY, exchange="x", delivery_mode=2) for _ in range(COUNT)])
        sent = 0

        def work():
            nonlocal sent
            sent += COUNT
            publisher.write(data)
            publisher.transport.sent.clear()
            ack = amqp.method(1, Basic.Ack(sent, multiple=True))
            for reader in readers:
                reader.transport.sent.clear()
                reader.write(ack)

        for _ in range(WAY_ROUNDS):
            work()
        say(f"the whole way to {queues} queue{'s' * (queues > 1)}, a publish", best(work, COUNT))
        world.close()


def bench_lone():
    """From bytes in to bytes out of a message that comes alone, a turn after each read."""
    with tempfile.TemporaryDirectory() as folder:
        world = AmqpWorld(Path(folder), is_sync=False, store_settings=StoreSettings())
        publisher, reader = world.client().confirms(), world.client()
        reader.declare("q")
        reader.consume("q").take()
        written = []
        publisher.transport.write = reader.transport.write = written.append
        data = amqp.publish(1, BODY, delivery_mode=2)
        take, settle, turn, now_ms = publisher.handler.on_data, reader.handler.on_data, world.broker.run_turn, NOW_MS
        tags = itertools.count(1)

        def work():
            acks = [amqp.method(1, Basic.Ack(next(tags))) for _ in range(COUNT)]
            began = time.perf_counter_ns()
            for ack in acks:
                take(data, now_ms)
                turn(now_ms)
                settle(ack, now_ms)
                turn(now_ms)
            return time.perf_counter_ns() - began

        found = min(work() for _ in range(WAY_ROUNDS)) / COUNT
        assert len(written) == 2 * WAY_ROUNDS * COUNT  # a confirm and a delivery each
        say("the whole way of a message that comes alone, acknowledged", found)
        world.close()


if __name__ == "__main__":
    sys.stdout.write("not compiled\n" if codec.__file__.endswith(".py") else "compiled\n")
    bench_cut()
    bench_deliver()
    bench_acknowledge()
    bench_lone()
    bench_way(1)
    bench_way(10)

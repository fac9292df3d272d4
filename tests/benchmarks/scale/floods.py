"""What one client's flood does to everybody else: the delay of a live pair beside it, at each door."""

from __future__ import annotations

import functools
import json
import selectors
import socket
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pamqp import base
from pamqp.commands import Basic, Channel, Connection, Queue

from tests.benchmarks.scale.gateway import gateway
from tests.benchmarks.scale.live_pair import START_S_MAX, watch
from tests.benchmarks.scale.points import Samples
from tests.benchmarks.scale.process import Worker, new_event
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scenarios.mqtt_latency_load import percentile
from tests.benchmarks.scenarios.peers import PEERS
from tests.support import amqp, mqtt
from tests.support.rocketmq import request_frame, send_frame

HOST = "127.0.0.1"
LIVE_RATE = 200
FLOOD_MAX_S = 120.0  # one flood; what takes longer counts as that long
ANSWER_S = 30.0  # a step of a handshake
READ_BYTES = 1 << 18
ADMIN_CLIENTS = 50
SUBSCRIPTIONS = 1_000  # of a heartbeat
FIELDS = 40  # of a table, with six values each: a binding has 256 at most
NAMESPACE = "f"  # what queues and topics of floods are called by


@dataclass(frozen=True)
class Flood:
    """One kind of flood.

    Args:
        name: Short, in file names and on the command line.
        title: What comes `size` times.
        size: Of the scenario, by itself.
        door: Where it comes in.
        peer: The server that is flooded beside the gateway, where it is installed.
        make: Returns the bytes of one flood of so many; asked again for each flood, with a number of its own.
        end: What is sent last, and what its answer has in it.
        opening: What is sent and answered first, in turns.
        clients: Connections that flood at the same time.
        comes_back: Whether each flood has a connection of its own, which then closes.
    """

    name: str
    title: str
    size: int
    door: str
    peer: str
    make: Callable[[int, int], bytes]
    end: tuple[bytes, bytes]
    opening: Sequence[tuple[bytes, bytes]]
    clients: int = 1
    comes_back: bool = False


def _each(make: Callable[[int], bytes]) -> Callable[[int, int], bytes]:
    """Return how to make a flood of what differs from one to the next, also from one flood to the next."""
    return lambda count, number: b"".join(make(number * count + i) for i in range(count))


def _same(make: Callable[[], bytes]) -> Callable[[int, int], bytes]:
    """Return how to make a flood of what is always the same."""
    return lambda count, _: make() * count


MQTT_OPENING = ((mqtt.connect(b"flooder"), b"\x20\x02"),)
MQTT_END = (mqtt.subscribe(65_535, (b"end", 0)), b"\x90\x03\xff\xff")


def _packet_id(number: int) -> int:
    return number % 65_000 + 1


def _subscribe(number: int) -> bytes:
    return mqtt.subscribe(_packet_id(number), (b"f/%d/+" % (number % 9_000), 0))


def _subscribe_and_back(number: int) -> bytes:
    name = b"f/%d/+" % number
    return mqtt.subscribe(_packet_id(number), (name, 0)) + mqtt.unsubscribe(_packet_id(number), name)


def _subscribe_at_once(count: int, number: int) -> bytes:
    return mqtt.subscribe(1, *((b"f/%d/%d/+" % (number, i), 0) for i in range(count)))


def _of_channel(method: base.Frame, number: int = 1) -> bytes:
    return amqp.method(number, method)


AMQP_OPENING = (
    (amqp.PROTOCOL_HEADER, b"\x00\x0a\x00\x0a"),
    (_of_channel(Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"), 0), b"\x00\x0a\x00\x1e"),
    (
        _of_channel(Connection.TuneOk(2_047, 131_072, 0), 0) + _of_channel(Connection.Open("/"), 0),
        b"\x00\x0a\x00\x29",
    ),
    (_of_channel(Channel.Open()), b"\x00\x14\x00\x0b"),
    (_of_channel(Queue.Declare(queue="flooded")), b"\x00\x32\x00\x0b"),
)
AMQP_END = (_of_channel(Basic.Qos(prefetch_count=1)), b"\x00\x3c\x00\x0b")
TABLE = {f"field-{number}": {"a": [1, 2, 3], "b": "text"} for number in range(FIELDS)}


def _declare(number: int) -> bytes:
    name = f"{NAMESPACE}{number}"
    return _of_channel(Queue.Declare(queue=name)) + _of_channel(Queue.Delete(queue=name))


def _bind(number: int) -> bytes:
    binding = {"queue": "flooded", "exchange": "amq.topic", "routing_key": f"{NAMESPACE}.{number}.*"}
    return _of_channel(Queue.Bind(**binding)) + _of_channel(Queue.Unbind(**binding))


def _bind_with_table() -> bytes:
    return _of_channel(Queue.Bind(queue="flooded", exchange="amq.direct", routing_key="k", arguments=TABLE))


ROCKETMQ_END = (request_frame(9_999, opaque=99_999_999), b"99999999")


def _heartbeat() -> bytes:
    wanted = [{"topic": f"T{i}", "subString": "a || b", "subVersion": 1} for i in range(SUBSCRIPTIONS)]
    said = {"clientID": "flooder", "consumerDataSet": [{"groupName": "flooders", "subscriptionDataSet": wanted}]}
    return request_frame(34, json.dumps(said).encode())


def _query_offset(number: int) -> bytes:
    return request_frame(14, opaque=number, consumerGroup=f"g{number % 1_000}", topic="%LMQ%flooded", queueId=0)


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def _mqtt(name: str, title: str, size: int, make: Callable[[int, int], bytes], *, comes_back: bool = False) -> Flood:
    return Flood(name, title, size, "mqtt", "mosquitto", make, MQTT_END, MQTT_OPENING, comes_back=comes_back)


def _amqp(name: str, title: str, size: int, make: Callable[[int, int], bytes], peer: str = "rabbitmq") -> Flood:
    return Flood(name, title, size, "amqp", peer, make, AMQP_END, AMQP_OPENING)


def _rocketmq(name: str, title: str, size: int, make: Callable[[int, int], bytes]) -> Flood:
    return Flood(name, title, size, "rocketmq", "", make, ROCKETMQ_END, ())


def _admin(name: str, path: str, size: int) -> Flood:
    make = _same(lambda: _get(path))
    return Flood(name, f"GET {path}", size, "admin", "", make, (_get("/healthz"), b'"status":"ok"'), (), ADMIN_CLIENTS)


FLOODS = (
    _mqtt("ping", "PINGREQ", 400_000, _same(lambda: mqtt.PINGREQ)),
    _mqtt("subscribe", "SUBSCRIBE, one filter each", 50_000, _each(_subscribe)),
    _mqtt("unsubscribe", "SUBSCRIBE and UNSUBSCRIBE", 25_000, _each(_subscribe_and_back)),
    _mqtt("at-once", "filters in one SUBSCRIBE, then the session ends", 10_000, _subscribe_at_once, comes_back=True),
    _mqtt("new-topics", "QoS 0 to ever new topics", 200_000, _each(lambda i: mqtt.publish(b"new/%d" % i, b"x"))),
    _mqtt("retained", "retained", 50_000, _each(lambda i: mqtt.publish(b"kept/%d" % (i % 50_000), b"x", retain=True))),
    _amqp("declare", "queue.declare and delete", 10_000, _each(_declare)),
    _amqp("bind", "queue.bind and unbind", 10_000, _each(_bind)),
    _amqp("tables", f"tables of {FIELDS} tables", 2_000, _same(_bind_with_table)),
    _amqp("get", "basic.get of nothing", 50_000, _same(lambda: _of_channel(Basic.Get(queue="flooded", no_ack=True)))),
    _amqp(
        "channels",
        "channel.open and close",
        50_000,
        _same(lambda: _of_channel(Channel.Open(), 2) + _of_channel(Channel.Close(0, "", 0, 0), 2)),
        peer="",  # RabbitMQ 3.10 resets the connection
    ),
    _amqp(
        "new-keys",
        "publishes to ever new keys",
        50_000,
        _each(lambda i: amqp.publish(1, b"x", exchange="amq.topic", key=f"new.{i}")),
    ),
    _rocketmq("heartbeat", f"heartbeats of {SUBSCRIPTIONS:,} subscriptions", 200, _same(_heartbeat)),
    _rocketmq("offsets", "queries of offsets", 20_000, _each(_query_offset)),
    _rocketmq(
        "new-queues", "sends to ever new light queues", 20_000, _each(lambda i: send_frame(b"x", b=f"%LMQ%n{i}"))
    ),
    _admin("metrics", "/metrics", 1_000),
    _admin("overview", "/api/overview", 2_000),
)


class Flooder:
    """The connections of one flood."""

    def __init__(self, flood: Flood, port: int) -> None:
        self._flood = flood
        self._port = port
        self._sockets = [self._open() for _ in range(flood.clients)]
        self._number = 0

    def _open(self) -> socket.socket:
        sock = socket.create_connection((HOST, self._port))
        sock.settimeout(ANSWER_S)
        for said, wanted in self._flood.opening:
            sock.sendall(said)
            got = b""
            while wanted not in got:
                got += _receive(sock)
        sock.setblocking(False)
        return sock

    def make(self, count: int) -> bytes:
        """Return what each connection is to send in the next flood."""
        data = self._flood.make(max(count // self._flood.clients, 1), self._number) + self._flood.end[0]
        self._number += 1
        return data

    def flood(self, data: bytes) -> float:
        """Send a flood, reading all answers; return the seconds until the last one came."""
        began = time.perf_counter()
        left = {sock: memoryview(data) for sock in self._sockets}
        tails = dict.fromkeys(self._sockets, b"")
        with selectors.DefaultSelector() as selector:
            for sock in left:
                selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while tails and time.perf_counter() < began + FLOOD_MAX_S:
                for key, events in selector.select(1.0):
                    self._move(selector, key.fileobj, events, left, tails)  # type: ignore[arg-type] # a socket
        return time.perf_counter() - began

    def _move(
        self,
        selector: selectors.BaseSelector,
        sock: socket.socket,
        events: int,
        left: dict[socket.socket, memoryview],
        tails: dict[socket.socket, bytes],
    ) -> None:
        if events & selectors.EVENT_WRITE:
            left[sock] = left[sock][sock.send(left[sock][:READ_BYTES]) :]
            if not left[sock]:
                selector.modify(sock, selectors.EVENT_READ)
        if events & selectors.EVENT_READ:
            wanted = self._flood.end[1]
            got = tails[sock] + _receive(sock)
            tails[sock] = got[-len(wanted) :]
            if wanted in got and not left[sock]:
                selector.unregister(sock)
                del tails[sock]

    def come_back(self) -> None:
        """Close the connections and open new ones."""
        self.close()
        self._sockets = [self._open() for _ in range(self._flood.clients)]

    def close(self) -> None:
        """Close the connections."""
        for sock in self._sockets:
            sock.close()


def _receive(sock: socket.socket) -> bytes:
    data = sock.recv(READ_BYTES)
    if not data:
        raise ConnectionError("the server closed the connection of the flood")
    return data


def measure(flood: Flood, run: Run, size: int) -> Samples:
    """Flood the gateway, and the peer that is found, each beside a live pair."""
    with gateway() as ours:
        ours.start()
        ports = dict(ours.server.ports)
        found = _beside(flood, run, size, ports, "the gateway")
        found.update(_read_loop(ports["admin"]))
    peer = PEERS.get(flood.peer)
    if peer is not None and peer.find_version() is not None:
        server = peer.start()
        try:
            beside = _beside(flood, run, size, dict(server.ports), peer.name)
        finally:
            server.stop()
        found.update({f"peer_{name}": values for name, values in beside.items() if name != "p50_ms"})
    return found


def _beside(flood: Flood, run: Run, size: int, ports: dict[str, int], server: str) -> dict[str, list[float]]:
    """Flood again and again for a while; return the delays of the live pair meanwhile."""
    run.say(f"{size:,} {flood.title}, beside a live pair at {server}")
    is_live, is_over = new_event(), new_event()
    witness = Worker(watch, ports["mqtt"], 0, LIVE_RATE, is_live, is_over)
    spans: list[tuple[int, int]] = []
    took: list[float] = []
    try:
        if not is_live.wait(START_S_MAX):
            raise TimeoutError("no message of the live pair has come")
        flooder = Flooder(flood, ports[flood.door])
        flooder.flood(flooder.make(max(size // 100, 1)))  # what is made on first use is there then
        while len(took) < run.rounds or sum(took) < run.secs:
            data = flooder.make(size)
            began = time.perf_counter_ns()
            took.append(flooder.flood(data))
            if flood.comes_back:
                flooder.come_back()
            spans.append((began, time.perf_counter_ns()))
            if took[-1] >= FLOOD_MAX_S:
                break
        flooder.close()
    finally:
        is_over.set()
        ages, _ = witness.result()
    beside = sorted(age for at, age in ages if any(began - age < at < ended for began, ended in spans))
    return {
        "p50_ms": [percentile(beside, 0.5) / 1e6],
        "p99_ms": [percentile(beside, 0.99) / 1e6],
        "max_ms": [percentile(beside, 1) / 1e6],
        "took_s": took,
    }


def _read_loop(port: int) -> dict[str, list[float]]:
    """Return how long the gateway's loop was held at most, by its own clock."""
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {
        "share_ms": [1e3 * float(values["lmq_share_seconds_max"])],
        "turn_ms": [1e3 * float(values["lmq_turn_seconds_max"])],
    }


def measure_of(flood: Flood) -> Callable[[Run, int], Samples]:
    """Return how to measure one flood."""
    return functools.partial(measure, flood)

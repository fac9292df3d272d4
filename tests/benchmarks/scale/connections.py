"""Connections: what a message costs the server when the same rate comes in by ever more of them.

The load is one loop over plain sockets that sends each message by itself when it is due, evenly in time: no two of them
share a read unless the server is behind.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence
from typing import NamedTuple

from tests.benchmarks.scale.gateway import Gateway, gateway
from tests.benchmarks.scale.points import Samples
from tests.benchmarks.scale.progress import Run
from tests.benchmarks.scenarios.mqtt_load import connect_packet, publish_packet, subscribe_packet

RATES = {"cpu_us": 10_000, "cpu_more_us": 40_000}  # messages a second, of all connections
BODY = b"x" * 256
WARM_S = 0.5
DRAIN_S = 5.0
READ_EACH_S = 0.01
READ_BYTES = 1 << 20
CONNACK_BYTES = 4
PUBACK_BYTES = 4
TIMEOUT_S = 30.0


class Sent(NamedTuple):
    """What one stretch came to."""

    sent: int
    acked: int
    received: int
    cpu_s: float


def measure(run: Run, size: int) -> Samples:
    """Publish QoS 1 by `size` connections to one wildcard subscriber."""
    found: dict[str, list[float]] = {"cpu_us": [], "cpu_more_us": [], "share": [], "lost": []}
    with gateway() as ours, contextlib.ExitStack() as open_ones:
        ours.start()
        subscriber = _open(ours, "subscriber", subscribe_packet(["bench/#"], 0))
        open_ones.enter_context(subscriber)
        memory = ours.server.private_bytes()
        publishers = [open_ones.enter_context(_open(ours, f"device{number:04}")) for number in range(size)]
        found["bytes_each"] = [(ours.server.private_bytes() - memory) / size]
        for name, rate in RATES.items():
            _send(ours, publishers, subscriber, rate, WARM_S)
            for number in range(run.rounds):
                run.say(f"{rate:,} messages/s by {size:,} connections, round {number + 1} of {run.rounds}")
                sent = _send(ours, publishers, subscriber, rate, run.secs)
                found[name].append(1e6 * sent.cpu_s / sent.sent)
                found["share"].append(sent.sent / run.secs / rate)
                found["lost"].append(sent.sent - min(sent.acked, sent.received))
    return found


def _open(ours: Gateway, client_id: str, more: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", ours.server.ports["mqtt"]), TIMEOUT_S)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.sendall(connect_packet(client_id) + more)
    wanted = CONNACK_BYTES + (CONNACK_BYTES + 1 if more else 0)
    while wanted:
        answer = made.recv(wanted)
        if not answer:
            raise ConnectionError(f"{client_id} was refused")
        wanted -= len(answer)
    made.setblocking(False)
    return made


def _send(
    ours: Gateway, publishers: Sequence[socket.socket], subscriber: socket.socket, rate: int, secs: float
) -> Sent:
    """Send at `rate` for `secs` seconds, take what comes back meanwhile, and then wait for the rest."""
    packets = [publish_packet(f"bench/{number:04}/state", BODY, 1) for number in range(len(publishers))]
    size = len(publish_packet("bench/0000/state", BODY))
    sent = acked = received = 0
    cpu, began = ours.cpu_s(), time.perf_counter()
    read_at = began + READ_EACH_S
    while (now := time.perf_counter()) - began < secs:
        if sent < (now - began) * rate:
            at = sent % len(publishers)
            publishers[at].send(packets[at])
            sent += 1
        elif now > read_at:
            received += _read(subscriber)
            acked += _read(publishers[sent % len(publishers)]) if len(publishers) == 1 else 0
            read_at = now + READ_EACH_S
    cpu = ours.cpu_s() - cpu
    deadline = time.perf_counter() + DRAIN_S
    while (acked < PUBACK_BYTES * sent or received < size * sent) and time.perf_counter() < deadline:
        received += _read(subscriber)
        acked += sum(_read(each) for each in publishers)
    return Sent(sent, acked // PUBACK_BYTES, received // size, cpu)


def _read(readable: socket.socket) -> int:
    try:
        return len(readable.recv(READ_BYTES))
    except BlockingIOError:
        return 0

"""A process of its own that keeps idle MQTT connections open, and asks what an operator's console asks when it is told.

It says `ready` once all are open. Each line that it reads is `ask` (from now on, each second) or `rest`; it ends with
its input. The last line that it says is a JSON object: for each question, the milliseconds that each answer took.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import select
import socket
import sys
import time

from tests.benchmarks.scenarios.mqtt_load import connect_packet

EACH_S = 1.0
TIMEOUT_S = 60.0
CONNACK_BYTES = 4
QUESTIONS = (  # of the pages that are open on an operator's screen, and of Prometheus
    "/api/overview",
    "/api/queues?page=1&page_size=100&sort=messages&sort_reverse=true",
    "/api/lmq/queues?page=1&page_size=100&sort=rate_in&sort_reverse=true",
    "/api/connections?page=1&page_size=100",
    "/api/channels?page=1&page_size=100",
    "/api/lmq/sessions?page=1&page_size=100&sort=inflight&sort_reverse=true",
    "/api/lmq/subscriptions?page=1&page_size=100",
    "/metrics",
)


def open_connections(port: int, count: int) -> list[socket.socket]:
    """Return MQTT connections that nothing is sent by any more."""
    found = []
    for number in range(count):
        one = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        one.sendall(connect_packet(f"idle{number:05}"))
        found.append(one)
        if len(one.recv(CONNACK_BYTES)) != CONNACK_BYTES:
            raise RuntimeError(f"connection {number} was refused")
    return found


def ask_all(port: int, took_ms: dict[str, list[float]]) -> None:
    """Ask all questions once; add how many milliseconds each answer took."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as connection:
        for path in QUESTIONS:
            began = time.perf_counter()
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status != http.client.OK:
                raise RuntimeError(f"{path} was answered with {answer.status}")
            took_ms[path].append((time.perf_counter() - began) * 1e3)


def main(admin_port: int, mqtt_port: int, count: int) -> None:
    """Keep company until the input ends."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened = open_connections(mqtt_port, count)
    print("ready", flush=True)
    is_asking, due = False, 0.0
    took_ms: dict[str, list[float]] = {path: [] for path in QUESTIONS}
    while True:
        left = max(due - time.monotonic(), 0.0) if is_asking else None
        if select.select([sys.stdin], [], [], left)[0]:
            line = sys.stdin.readline()
            if not line:
                break
            is_asking, due = line.strip() == "ask", time.monotonic()
        elif is_asking:
            due = time.monotonic() + EACH_S
            ask_all(admin_port, took_ms)
    print(json.dumps(took_ms), flush=True)
    for one in opened:
        one.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

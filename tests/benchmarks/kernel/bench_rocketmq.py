"""Print what RocketMQ costs without system calls, in ns: python tests/benchmarks/kernel/bench_rocketmq.py."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from gateway.rocketmq import codec
from tests.support.rocketmq import request_frame, send_frame
from tests.support.rocketmq_door import DoorSite

COUNT = 200  # sends in a read
ROUNDS = 200
BODY = b"x" * 256


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


def bench_sends(site, header_type, name):
    peer = site.connect()
    peer.transport.write = lambda _data: None
    one = send_frame(BODY, topic="T", header_type=header_type)

    def give_all():
        peer.handler.on_data(one * COUNT, site.now_ms)
        site.turn()

    def give_one():
        for _ in range(COUNT):
            peer.handler.on_data(one, site.now_ms)
        site.turn()

    say(f"store and answer a send of 256 B, {name}", best(give_all, COUNT))
    say(f"... that comes alone, {name}", best(give_one, COUNT))
    peer.close()


def bench_requests(site):
    peer = site.connect()
    peer.transport.write = lambda _data: None
    asked = request_frame(30, topic="T", queueId=0)
    pull = request_frame(
        11, consumerGroup="g", topic="T", queueId=0, queueOffset=0, maxMsgNums=32, sysFlag=4, commitOffset=0,
        suspendTimeoutMillis=15_000, subscription="*", subVersion=0,
    )  # fmt: skip

    def ask():
        peer.handler.on_data(asked * COUNT, site.now_ms)

    def pull_all():
        for _ in range(COUNT):
            peer.handler.on_data(pull, site.now_ms)

    say("answer a request for a queue's end, many in a read", best(ask, COUNT))
    say("answer a pull of 32 messages", best(pull_all, COUNT))
    peer.close()


if __name__ == "__main__":
    sys.stdout.write("not compiled\n" if codec.__file__.endswith(".py") else "compiled\n")
    with tempfile.TemporaryDirectory() as folder:
        made = DoorSite(Path(folder) / "data", segment_bytes=1 << 28)
        bench_sends(made, 1, "binary")
        bench_sends(made, 0, "JSON")
        bench_requests(made)
        made.close()

"""POP against a gateway that is a process of its own, killed in the middle; by raw requests and the official client."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Self

import pytest

from tests.support.gateway import GatewayProcess
from tests.support.rocketmq import send_ext
from tests.support.rocketmq_pop import pop_fields, read_popped
from tests.support.rocketmq_wire import Wire

pytestmark = pytest.mark.slow

JARS = os.environ.get("LMQ_TEST_ROCKETMQ_LIB", "")
WAIT_S = 90
INVISIBLE_MS = 1_000


def send(wire: Wire, bodies: list[bytes], topic: str = "T", queues: int = 4) -> None:
    for number, body in enumerate(bodies):
        answer = wire.ask(310, body, **send_ext(topic, d=str(queues), e=str(number % queues)))
        assert answer.code == 0, answer.remark


def take(wire: Wire, **changes: object):
    answer = wire.ask(200_050, **pop_fields(invisibleTime=INVISIBLE_MS, **changes))
    assert answer.code in {0, 210}, answer.remark
    return read_popped(answer)


def finish(wire: Wire, message) -> None:
    answer = wire.ask(
        200_051,
        consumerGroup="g",
        topic="T",
        queueId=message.queue_id,
        offset=message.offset,
        extraInfo=message.receipt,
    )
    assert answer.code == 0, answer.remark


def test_what_is_taken_and_done_outlives_a_killed_gateway(tmp_path):
    """Two consumers; one takes and never acknowledges. Nothing is lost, and nothing that is done comes back."""
    sent = {b"%d" % number for number in range(300)}
    done: set[bytes] = set()
    seen: Counter[bytes] = Counter()
    chance = random.Random(7)
    with GatewayProcess(tmp_path / "data") as gateway:
        with Wire(gateway.address("broker")) as wire:
            send(wire, sorted(sent))
        for _ in range(2):
            with Wire(gateway.address("broker")) as good, Wire(gateway.address("broker")) as hung:
                for _ in range(12):
                    for message in take(hung, maxMsgNums=3):
                        seen[message.body] += 1
                    for message in take(good, maxMsgNums=10):
                        seen[message.body] += 1
                        assert message.body not in done
                        if chance.random() < 0.9:
                            finish(good, message)
                            done.add(message.body)
            gateway.restart()
        with Wire(gateway.address("broker")) as wire:
            until = time.monotonic() + WAIT_S
            while done != sent:
                assert time.monotonic() < until, sorted(sent - done)
                for message in take(wire, pollTime=2_000):
                    assert message.body not in done
                    seen[message.body] += 1
                    assert message.attempts == seen[message.body] - 1
                    finish(wire, message)
                    done.add(message.body)
            assert take(wire, pollTime=2 * INVISIBLE_MS) == []


class JavaConsumer:
    """The official push consumer as a process; what it says is collected line by line."""

    def __init__(self, folder: Path, namesrv: str, manner: str) -> None:
        source = str(Path(__file__).with_name("JavaPop.java"))
        command = ["java", f"-Duser.home={folder}", "-cp", f"{JARS}/*", source, namesrv, "T", "g", manner]
        self.lines: list[str] = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._news = threading.Condition()
        self._reading = threading.Thread(target=self._collect, daemon=True)
        self._reading.start()

    def _collect(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                with self._news:
                    self.lines.append(line.strip())
                    self._news.notify_all()

    def said(self, word: str) -> list[list[str]]:
        return [line.split() for line in list(self.lines) if line.startswith(word)]

    def wait_until(self, condition) -> None:
        """Wait until a condition holds, which only a line of this consumer's can bring about."""
        with self._news:
            assert self._news.wait_for(condition, WAIT_S), self.lines[-9:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join()


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on: the official client goes on at the address it knows."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.skipif(not JARS or not shutil.which("java"), reason="LMQ_TEST_ROCKETMQ_LIB names no jars, or no Java")
def test_the_official_push_consumer_pops_while_another_hangs_and_the_gateway_is_killed(tmp_path):
    """It fails each message once; each is done once all the same, but for those whose end the kill took."""
    namesrv, broker = (f"127.0.0.1:{port}" for port in free_ports(2))
    options = ("--namesrv", namesrv, "--broker", broker)
    sent = [f"m{number}" for number in range(200)]
    with GatewayProcess(tmp_path / "data", *options, doors=("mqtt", "amqp", "admin")) as gateway:
        with Wire(gateway.address("broker")) as wire:
            send(wire, [b"warm"])
            mode = {"topic": "T", "consumerGroup": "g", "mode": "POP", "popShareQueueNum": 0}
            assert wire.ask(401, json.dumps(mode).encode()).code == 0
        with JavaConsumer(tmp_path, namesrv, "hangs") as hung:
            hung.wait_until(lambda: hung.said("hung"))
            with JavaConsumer(tmp_path, namesrv, "fails") as other:
                other.wait_until(lambda: other.said("started"))
                for half in (sent[:100], sent[100:]):
                    with Wire(gateway.address("broker")) as wire:
                        send(wire, [body.encode() for body in half])
                    other.wait_until(lambda: len(other.said("done")) >= 40)
                    if half[0] == "m0":
                        gateway.restart()
                other.wait_until(lambda: {*sent, "warm"} <= {line[1] for line in other.said("done")})
                done = other.said("done")
                assert {line[3] for line in done} == {"T"}
                assert "0" not in {line[2] for line in done}
                assert len(done) <= len(sent) + 1 + 32  # what it had done when the gateway was killed

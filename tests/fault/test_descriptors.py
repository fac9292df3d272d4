"""A gateway whose limit of open files is less than its clients want."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from tests.support import mqtt
from tests.support.gateway import DOORS, GatewayProcess
from tests.support.mqtt_client import MqttClient
from tests.support.sources import ROOT

pytestmark = pytest.mark.slow
LIMIT = 780
SEGMENT_BYTES = 64 * 1024
WAIT_S = 20
NEVER = threading.Event()


def _with_limit(limit):
    """Return what starts a program that may open so many files, whatever it does."""
    return "sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"


@pytest.fixture
def gateway(tmp_path):
    env = {"LMQ_STORE__SEGMENT_BYTES": str(SEGMENT_BYTES), "LMQ_STORE__SEGMENTS_MAPPED_MAX": "2"}
    with GatewayProcess(tmp_path / "data", env=env, prefix=_with_limit(LIMIT), doors=DOORS) as gateway:
        yield gateway


def _metrics(gateway):
    host, port = gateway.address("admin")
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=WAIT_S) as answer:
        lines = [line.split() for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def _until(holds):
    until = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < until
        NEVER.wait(0.02)


def _publish(client, body):
    client.send(mqtt.publish(b"t", body, qos=1, packet_id=1))


def _take(client, count):
    """Return so many packets."""
    packets = []
    while len(packets) < count:
        found = client.read()
        assert found, packets
        packets += found
    return packets


def test_those_who_are_in_go_on_and_others_come_in_as_soon_as_somebody_leaves(gateway):
    address = gateway.address("mqtt")
    places = int(_metrics(gateway)["lmq_connections_max"])
    assert 16 <= places < LIMIT
    with contextlib.ExitStack() as clients:
        inside = [clients.enter_context(MqttClient(address, b"c%d" % i, clean=True)) for i in range(places)]
        outside = [clients.enter_context(socket.create_connection(address, timeout=WAIT_S)) for _ in range(100)]
        for number, sock in enumerate(outside):
            sock.sendall(mqtt.connect(b"o%d" % number, clean=True))
        _until(lambda: any("newcomers wait" in line for line in gateway.errors))

        # Connected clients publish and are sent, through many new segments and their indexes.
        reader, writer = inside[:2]
        reader.send(mqtt.subscribe(1, (b"t", 0)))
        assert _take(reader, 1)[0][:1] == b"\x90"
        for number in range(100):
            _publish(writer, b"%d" % number + b"." * 10_000)
            assert _take(writer, 1)[0][:1] == b"\x40"
        assert len(_take(reader, 100)) == 100
        assert len(list(Path(gateway.data_dir / "commitlog").iterdir())) > 12

        # A client of another door and a definition that is written down wait for nobody.
        seen = _metrics(gateway)
        assert seen["lmq_newcomers_wait"] == 1
        assert seen["process_open_fds"] < LIMIT
        assert seen["process_max_fds"] == LIMIT
        for sock in outside:
            sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                sock.recv(1)
        (told,) = [line for line in gateway.errors if "newcomers wait" in line]
        assert f"open={places} connections_max={places}" in told

        # Ten leave, ten come in, in their order.
        for client in inside[2:12]:
            client.sock.close()
        for sock in outside[:10]:
            sock.settimeout(WAIT_S)
            assert sock.recv(4) == b"\x20\x02\x00\x00"
        _publish(writer, b"end")
        assert _take(writer, 1)[0][:1] == b"\x40"
    _until(lambda: any("connections are let in again" in line for line in gateway.errors))
    with MqttClient(address, b"late") as late:
        _publish(late, b"x")
        assert _take(late, 1)[0][:1] == b"\x40"
    assert not [line for line in gateway.errors if " error " in line or "Traceback" in line]
    assert gateway.stop() == 0


def test_idle_admin_connections_take_nothing_from_the_store(gateway):
    with contextlib.ExitStack() as clients:
        idle = [clients.enter_context(socket.create_connection(gateway.address("admin"))) for _ in range(LIMIT)]
        with MqttClient(gateway.address("mqtt"), b"c") as client:
            for number in range(50):
                _publish(client, b"%d" % number + b"." * 10_000)
                assert _take(client, 1)[0][:1] == b"\x40"
        idle[0].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: idle[0].recv(65536), b""))
        (opened,) = [line for line in answer.decode().splitlines() if line.startswith("process_open_fds ")]
        assert float(opened.split()[1]) < LIMIT


def test_limit_that_is_too_low_is_said_in_one_line(tmp_path):
    command = [sys.executable, "-m", "gateway", "serve", "--data-dir", str(tmp_path / "data")]
    result = subprocess.run(
        [*_with_limit(100), *command], cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert re.match(r"lmq: the limit of 100 open files is too low: the store and 16 connections take up to \d+; ", line)
    assert not (tmp_path / "data").exists()

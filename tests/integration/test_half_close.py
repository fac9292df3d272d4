"""A client that sends and then closes its half of the socket reads the answers, with every message on disk first."""

from __future__ import annotations

import socket

import pytest
from pamqp import commands
from pamqp.commands import Basic, Confirm, Connection, Queue

from lmq.remoting.commands import decode_header
from lmq.remoting.frames import Frames, cut_frames
from tests.support import amqp, mqtt
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import split
from tests.support.rocketmq import send_frame

pytestmark = pytest.mark.slow

COUNT = 200
WAIT_S = 10


@pytest.fixture
def gateway(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        yield gateway
        assert gateway.stop() == 0
        assert not any("Traceback" in line for line in gateway.errors), "".join(gateway.errors)


def send_and_end(address, *data):
    """Send everything in one write, close that half, and return all that comes until the gateway closes the other."""
    with socket.create_connection(address, timeout=WAIT_S) as sock:
        sock.sendall(b"".join(data))
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(1 << 16), b""))


def test_mqtt_publishes_before_the_end_are_acknowledged(gateway):
    publishes = [mqtt.publish(b"t", b"x" * 100, qos=1, packet_id=i) for i in range(1, COUNT + 1)]
    packets, rest = split(send_and_end(gateway.address("mqtt"), mqtt.connect(b"c"), *publishes))
    assert packets == [mqtt.connack(), *[mqtt.puback(i) for i in range(1, COUNT + 1)]]
    assert rest == b""


def test_amqp_publishes_before_the_end_are_confirmed(gateway):
    declare = Queue.Declare(queue="q", durable=True)
    said = send_and_end(
        gateway.address("amqp"),
        amqp.PROTOCOL_HEADER,
        amqp.method(0, Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")),
        amqp.method(0, Connection.TuneOk(2_047, 131_072, 0)),
        amqp.method(0, Connection.Open("/")),
        *[amqp.method(1, one) for one in (commands.Channel.Open(), Confirm.Select(), declare)],
        *[amqp.publish(1, b"x" * 100, key="q", delivery_mode=2) for _ in range(COUNT)],
    )
    frames = [value for _, value in amqp.decode_frames(said)]
    assert any(isinstance(one, Queue.DeclareOk) for one in frames)
    assert isinstance(frames[-1], Basic.Ack)
    assert frames[-1].delivery_tag == COUNT


def test_rocketmq_sends_before_the_end_are_answered(gateway):
    said = send_and_end(gateway.address("broker"), *[send_frame(b"m%d" % i, opaque=i) for i in range(COUNT)])
    frames = Frames(COUNT)
    assert cut_frames(said, 0, frames, 1 << 20) == len(said)
    starts, ends = frames.header_start, frames.header_end
    answers = [decode_header(frames.header_type[i], said[starts[i] : ends[i]], b"") for i in range(frames.count)]
    assert [(answer.opaque, answer.code) for answer in answers] == [(i, 0) for i in range(COUNT)]

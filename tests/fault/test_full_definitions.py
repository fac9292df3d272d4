"""Definitions while the disk has no room at all: refused by each protocol's own error, and made when there is room."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import suppress

import aio_pika
import pytest
from aio_pika import Message
from aiormq.exceptions import ConnectionResourceError

from lmq.remoting.commands import Command, decode_header, encode_command
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import ResponseCode
from tests.support import mqtt
from tests.support.amqp_clients import take
from tests.support.gateway import GatewayProcess
from tests.support.mqtt_client import MqttClient, split

pytestmark = pytest.mark.slow

WAIT_S = 10  # whatever is not answered in so long waits for room
DISCONNECT = mqtt.packet(0xE0, b"")  # by which a session is written down as idle


def fill(folder):
    """Leave no room on a small disk, not even for one page."""
    size = 1 << 20
    with (folder / "full").open("wb", buffering=0) as file:
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2


def wait_for_line(gateway, text):
    never = threading.Event()
    until = time.monotonic() + WAIT_S
    while not any(text in line for line in gateway.errors):
        assert time.monotonic() < until, f"not said: {text}\n" + "".join(gateway.errors)
        never.wait(0.02)


def say(address, *packets, count=1):
    """Return so many packets that an MQTT client is sent that says this much."""
    with socket.create_connection(address, timeout=WAIT_S) as sock:
        sock.sendall(b"".join(packets))
        found, rest = [], b""
        while len(found) < count and (data := sock.recv(1 << 16)):
            more, rest = split(rest + data)
            found += more
    return found


def make_topic(gateway, name):
    """Return the response code of a request for a topic."""
    ext = {"topic": name, "defaultTopic": "TBW102", "readQueueNums": "2", "writeQueueNums": "2", "perm": "6"}
    ext |= {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}
    with socket.create_connection(gateway.address("broker"), timeout=WAIT_S) as sock:
        sock.sendall(encode_command(Command(RequestCode.UPDATE_AND_CREATE_TOPIC, 1, ext=ext)))
        said, frames = b"", Frames(1)
        while not frames.count:
            said += sock.recv(1 << 16)
            cut_frames(said, 0, frames, 1 << 20)
    return decode_header(frames.header_type[0], said[frames.header_start[0] : frames.header_end[0]], b"").code


class Amqp:
    """Declares by connections of its own, each of which ends with its first error."""

    def __init__(self, gateway):
        self.url = "amqp://guest:guest@{}:{}/".format(*gateway.address("amqp"))

    async def do(self, work):
        async with asyncio.timeout(WAIT_S), await aio_pika.connect(self.url) as connection:
            return await work(await connection.channel())

    def declare(self, name, **options):
        """Declare a queue; return how many messages it has."""

        async def work(channel):
            return (await channel.declare_queue(name, durable=True, **options)).declaration_result.message_count

        return asyncio.run(self.do(work))

    def put(self, name, body):
        async def work(channel):
            await channel.default_exchange.publish(Message(body, delivery_mode=2), name)

        return asyncio.run(self.do(work))

    def drain(self, name):
        async def work(channel):
            queue = await channel.declare_queue(name, durable=True)
            await queue.bind("amq.topic", "plant.1")  # as it is already
            return await take(queue, queue.declaration_result.message_count)

        return asyncio.run(self.do(work))

    def is_refused(self, work):
        """Return whether a method ends its connection with 506."""
        try:
            with suppress(asyncio.CancelledError):
                asyncio.run(self.do(work))
        except ConnectionResourceError as error:
            return "RESOURCE_ERROR - no space left" in str(error)
        return False


def refusals_of(amqp):
    """Return whether each kind of new durable definition is refused."""
    return [
        amqp.is_refused(work)
        for work in (
            lambda channel: channel.declare_queue("new", durable=True),
            lambda channel: channel.declare_exchange("new", "topic", durable=True),
            lambda channel: bind(channel, "new.key"),
        )
    ]


def wait_until_taken(amqp):
    """Wait until a commit that waited for room has found it."""
    until = time.monotonic() + WAIT_S
    while amqp.is_refused(lambda channel: channel.declare_queue("new", durable=True)):
        assert time.monotonic() < until, "refused though there is room"


async def bind(channel, key):
    queue = await channel.get_queue("q")
    await queue.bind("amq.topic", key)


def check_refused(gateway, amqp, reader):
    """Each protocol refuses by its own error what it cannot promise."""
    address = gateway.address("mqtt")
    assert refusals_of(amqp) == [True] * 3
    reader.send(mqtt.subscribe(7, (b"b", 1), (b"c", 0)))
    assert reader.read(wait_s=WAIT_S) == [mqtt.suback(7, 0x80, 0x80)]
    assert say(address, mqtt.connect(b"new", clean=False)) == [mqtt.connack(3)]
    (refused,) = say(address, mqtt.connect_5(b"new5", properties=b"\x05\x11" + (60).to_bytes(4, "big")))
    assert refused[3] == 0x89  # busy
    assert make_topic(gateway, "new") == ResponseCode.SYSTEM_BUSY


def check_going_on(gateway, amqp):
    """What was there is there, and what ends with its client can be had."""
    address = gateway.address("mqtt")
    assert amqp.declare("q") == 1
    assert amqp.drain("q") == [b"kept"]
    assert say(address, mqtt.connect(b"old", clean=False)) == [mqtt.connack(session_present=True)]
    said = say(address, mqtt.connect(b"passing"), mqtt.subscribe(1, (b"d", 1)), count=2)
    assert said == [mqtt.connack(), mqtt.suback(1, 1)]


def check_all_can_be_had(gateway, amqp, reader):
    """Nothing was half done."""
    assert refusals_of(amqp) == [False] * 3
    assert amqp.declare("other") == 0
    reader.send(mqtt.subscribe(8, (b"b", 1)))
    assert reader.read(wait_s=WAIT_S) == [mqtt.suback(8, 1)]
    assert say(gateway.address("mqtt"), mqtt.connect(b"new", clean=False)) == [mqtt.connack()]
    assert make_topic(gateway, "new") == ResponseCode.SUCCESS


@pytest.mark.parametrize("is_stuck", [False, True], ids=["no commit waits", "a commit waits"])
def test_definitions_are_refused_while_there_is_no_room_and_made_again_when_there_is(small_disk, is_stuck):
    env = {"LMQ_STORE__DISK_FREE_BYTES_MIN": "0", "LMQ_STORE__SEGMENT_BYTES": str(1 << 20)}
    with GatewayProcess(small_disk / "data", env=env) as gateway:
        amqp, address = Amqp(gateway), gateway.address("mqtt")
        amqp.declare("q")
        asyncio.run(amqp.do(lambda channel: bind(channel, "plant.1")))
        amqp.put("q", b"kept")
        said = say(address, mqtt.connect(b"old", clean=False), mqtt.subscribe(1, (b"a", 1)), count=2)
        assert said == [mqtt.connack(), mqtt.suback(1, 1)]
        with MqttClient(address, b"going") as going, MqttClient(address, b"reader") as reader:
            fill(small_disk)
            if is_stuck:
                going.send(DISCONNECT)
                wait_for_line(gateway, "what is to be safe on disk waits for room")
            check_refused(gateway, amqp, reader)
            check_going_on(gateway, amqp)
            (small_disk / "full").unlink()
            wait_until_taken(amqp)
            check_all_can_be_had(gateway, amqp, reader)
        gateway.restart()
        amqp = Amqp(gateway)
        assert [amqp.declare(name) for name in ("q", "new", "other")] == [0] * 3
        assert say(gateway.address("mqtt"), mqtt.connect(b"new", clean=False)) == [mqtt.connack(session_present=True)]
        assert gateway.stop() == 0

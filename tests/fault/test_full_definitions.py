"""Definitions while the disk has no room at all: refused by each protocol's own error, and made when there is room."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import time
import urllib.error
import urllib.request
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
from tests.support.gateway import DOORS, GatewayProcess
from tests.support.mqtt_client import MqttClient, split

pytestmark = pytest.mark.slow

WAIT_S = 10  # whatever is not answered in so long waits for room


def fill(folder):
    """Leave no room on a small disk, not even for one page."""
    size = 1 << 20
    with (folder / "full").open("ab", buffering=0) as file:
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2


def ask(gateway, method, path, body=None):
    """Return the status of an answer of the API, which comes in time."""
    said = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request("http://{}:{}/api{}".format(*gateway.address("admin"), path), said, method=method)
    asked.add_header("Authorization", "Basic " + base64.b64encode(b"guest:guest").decode())
    asked.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(asked, timeout=WAIT_S) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def get_stuck(gateway):
    """Have the operator put so much that what the database has for that is full, too."""
    for i in range(2_000):
        status = ask(gateway, "PUT", f"/vhosts/{i}", {"description": "x" * 4_000})
        if status == 503:
            return
        assert status == 201
    raise AssertionError("the room has no end")


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
    with GatewayProcess(small_disk / "data", env=env, doors=DOORS) as gateway:
        amqp, address = Amqp(gateway), gateway.address("mqtt")
        amqp.declare("q")
        asyncio.run(amqp.do(lambda channel: bind(channel, "plant.1")))
        amqp.put("q", b"kept")
        said = say(address, mqtt.connect(b"old", clean=False), mqtt.subscribe(1, (b"a", 1)), count=2)
        assert said == [mqtt.connack(), mqtt.suback(1, 1)]
        with MqttClient(address, b"reader") as reader:
            fill(small_disk)
            if is_stuck:
                get_stuck(gateway)
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


POLICY = {"pattern": "q", "definition": {"max-length": 1}}
CHANGES = [  # what an operator does
    ("DELETE", "/queues/%2F/q0/contents", None),
    ("DELETE", "/queues/%2F/q0", None),
    ("DELETE", "/exchanges/%2F/x", None),
    ("PUT", "/policies/%2F/p", POLICY),
    ("DELETE", "/policies/%2F/before", None),
    ("PUT", "/lmq/users/u/password", {"password": "other"}),
    ("POST", "/lmq/users/u/disable", None),
    ("DELETE", "/permissions/%2F/u", None),
    ("DELETE", "/users/v", None),
    ("DELETE", "/vhosts/v", None),
    ("DELETE", "/lmq/sessions/old", None),
    ("POST", "/lmq/retention", None),
]
GONE = ("/queues/%2F/q0", "/exchanges/%2F/x", "/policies/%2F/before", "/permissions/%2F/u", "/users/v", "/vhosts/v")


def make_what_is_changed(gateway, amqp):
    for name in ("q0", "q1"):
        amqp.declare(name)
    for user in ("u", "v"):
        assert ask(gateway, "PUT", f"/users/{user}", {"password": "x", "tags": ""}) == 201
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    assert ask(gateway, "PUT", "/permissions/%2F/u", rights) == 201
    assert ask(gateway, "PUT", "/policies/%2F/before", {"pattern": "q", "definition": {"max-length": 9}}) == 201
    assert ask(gateway, "PUT", "/exchanges/%2F/x", {"type": "fanout", "durable": True}) == 201
    assert ask(gateway, "PUT", "/vhosts/v") == 201
    assert say(gateway.address("mqtt"), mqtt.connect(b"old", clean=False)) == [mqtt.connack()]


def test_what_an_operator_changes_and_deletes_on_a_full_disk_is_done_and_kept(small_disk):
    env = {"LMQ_STORE__DISK_FREE_BYTES_MIN": "0", "LMQ_STORE__SEGMENT_BYTES": str(1 << 20)}
    with GatewayProcess(small_disk / "data", env=env, doors=DOORS) as gateway:
        make_what_is_changed(gateway, Amqp(gateway))
        fill(small_disk)
        for method, path, body in CHANGES:
            assert ask(gateway, method, path, body) in {200, 201, 204}, path
        for i in range(600):  # more than the database's log has room for
            assert ask(gateway, "PUT", "/policies/%2F/p", {**POLICY, "priority": i}) == 204
        gateway.restart()
        assert [ask(gateway, "GET", path) for path in GONE] == [404] * len(GONE)
        assert ask(gateway, "GET", "/policies/%2F/p") == 200
        assert say(gateway.address("mqtt"), mqtt.connect(b"old", clean=False)) == [mqtt.connack(3)]  # it is a new one
        assert gateway.stop() == 0
        assert (small_disk / "data/definitions.db-wal").stat().st_blocks * 512 >= 4 << 20
        fill(small_disk)  # others take what a stop gives back
        gateway.start()
        assert ask(gateway, "DELETE", "/queues/%2F/q1") == 204
        (small_disk / "full").unlink()
        wait_until_taken(Amqp(gateway))
        gateway.restart()
        assert ask(gateway, "GET", "/queues/%2F/q1") == 404
        assert gateway.stop() == 0

"""Clients that come with ever new names and leave: what each leaves behind in a gateway is looked for in its memory.

Each kind is a function of a gateway's ports by door and of the numbers that make its names.
"""

from __future__ import annotations

import json
import socket
from typing import Self

from pamqp import commands, frame

from tests.support import amqp, mqtt
from tests.support.rocketmq import request_frame

TIMEOUT_S = 60
TOPIC_BYTES = 16_000
AT_ONCE = 50  # in one write
HEART_BEAT, UNREGISTER, PULL = 34, 35, 11
SUSPENDED = 0x2 | 0x4  # and with a subscription of its own


class Conn:
    """A blocking connection that counts bytes, or looks for some, in what it is sent."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tail = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.sock.close()

    def send(self, *data: bytes) -> None:
        self.sock.sendall(b"".join(data))

    def more(self) -> None:
        data = self.sock.recv(1 << 16)
        if not data:
            raise ConnectionError("the gateway closed the connection")
        self.tail += data

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        while len(self.tail) < count:
            self.more()
        data, self.tail = self.tail[:count], self.tail[count:]
        return data

    def expect(self, data: bytes) -> None:
        """Take what must come next."""
        found = self.take(len(data))
        if found != data:
            raise AssertionError(f"not {data!r} but {found!r}")

    def take_method(self) -> object:
        """Return the next AMQP method, body or header; heartbeats are passed over."""
        while True:
            try:
                size, _, value = frame.unmarshal(self.tail)
            except Exception:  # noqa: BLE001 - whatever pamqp says of a part of a frame
                self.more()
                continue
            self.tail = self.tail[size:]
            return value

    def take_command(self) -> bytes:
        """Return the next RocketMQ command, whole."""
        size = int.from_bytes(self.take(4), "big")
        return self.take(size)


def open_mqtt(ports: dict[str, int], client_id: bytes) -> Conn:
    conn = Conn(ports["mqtt"])
    conn.send(mqtt.connect(client_id))
    conn.expect(mqtt.connack())
    return conn


def topics(ports: dict[str, int], numbers: range) -> None:
    """Publish to ever new topics of 16 KB, one message each."""
    with open_mqtt(ports, b"topics") as conn:
        for number in numbers:
            conn.send(mqtt.publish(b"%d/" % number + b"t" * TOPIC_BYTES, b"x"))
            if number % AT_ONCE == 0:
                conn.send(mqtt.PINGREQ)
                conn.expect(mqtt.PINGRESP)
        conn.send(mqtt.PINGREQ)
        conn.expect(mqtt.PINGRESP)


def clients(ports: dict[str, int], numbers: range) -> None:
    """Come with ever new client identifiers, long ones, for a clean session each; publish once, and leave."""
    for number in numbers:
        with open_mqtt(ports, b"%d" % number + b"c" * 900) as conn:
            conn.send(mqtt.subscribe(1, (b"all", 1)))
            conn.expect(mqtt.suback(1, 1))
            conn.send(mqtt.unsubscribe(2, b"all"), mqtt.DISCONNECT)


def filters(ports: dict[str, int], numbers: range) -> None:
    """Subscribe to ever new filters, get a message by each, and give them up."""
    with open_mqtt(ports, b"filters") as conn:
        for number in numbers:
            topic = b"reply/%08d/of/some/request" % number
            conn.send(mqtt.subscribe(1, (topic, 0)), mqtt.publish(topic, b"x"))
            conn.expect(mqtt.suback(1, 0) + mqtt.publish(topic, b"x"))
            conn.send(mqtt.unsubscribe(2, topic))
            conn.expect(mqtt.unsuback(2))


def open_amqp(ports: dict[str, int]) -> Conn:
    conn = Conn(ports["amqp"])
    conn.send(amqp.PROTOCOL_HEADER)
    conn.take_method()
    conn.send(amqp.method(0, commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")))
    conn.take_method()
    conn.send(
        amqp.method(0, commands.Connection.TuneOk(0, 131_072, 0)),
        amqp.method(0, commands.Connection.Open("/")),
        amqp.method(1, commands.Channel.Open()),
    )
    conn.take_method()
    conn.take_method()
    return conn


def queues(ports: dict[str, int], numbers: range) -> None:
    """Declare ever new exclusive queues, named by the server; get a message by each, and delete them."""
    with open_amqp(ports) as conn:
        for _ in numbers:
            conn.send(amqp.method(1, commands.Queue.Declare(queue="", exclusive=True)))
            name = conn.take_method().queue  # type: ignore[attr-defined]
            conn.send(
                amqp.publish(1, b"x", key=name),
                amqp.method(1, commands.Basic.Get(queue=name, no_ack=True)),
                amqp.method(1, commands.Queue.Delete(queue=name)),
            )
            found = [type(conn.take_method()).__name__ for _ in range(4)]
            assert found == ["GetOk", "ContentHeader", "ContentBody", "DeleteOk"], found


def consumers(ports: dict[str, int], numbers: range) -> None:
    """Come by ever new connections, with a queue each that goes with its consumer, bound to the topic space."""
    for number in numbers:
        name = f"consumer-{number:08}"
        with open_amqp(ports) as conn:
            conn.send(
                amqp.method(1, commands.Queue.Declare(queue=name, auto_delete=True)),
                amqp.method(1, commands.Queue.Bind(queue=name, exchange="amq.topic", routing_key=f"{name}.#")),
                amqp.method(1, commands.Basic.Consume(queue=name, consumer_tag="c", no_ack=True)),
                amqp.publish(1, b"x", exchange="amq.topic", key=f"{name}.now"),
            )
            found = [type(conn.take_method()).__name__ for _ in range(6)]
            assert found == ["DeclareOk", "BindOk", "ConsumeOk", "Deliver", "ContentHeader", "ContentBody"], found


def groups(ports: dict[str, int], numbers: range) -> None:
    """Come with ever new RocketMQ groups, that wait for messages to try again, and leave them."""
    with Conn(ports["broker"]) as conn:
        for number in numbers:
            group = f"group-{number:08}"
            said = {"clientID": f"client-{number}", "consumerDataSet": [{"groupName": group}]}
            conn.send(
                request_frame(HEART_BEAT, json.dumps(said).encode()),
                request_frame(
                    PULL, consumerGroup=group, topic=f"%RETRY%{group}", queueId=0, queueOffset=0, maxMsgNums=32,
                    sysFlag=SUSPENDED, commitOffset=0, suspendTimeoutMillis=1, subscription="*", subVersion=0,
                ),
                request_frame(UNREGISTER, clientID=f"client-{number}", consumerGroup=group),
            )  # fmt: skip
            for _ in range(3):  # the others are told that the group changed; the pull is answered later
                conn.take_command()


KINDS = {each.__name__: each for each in (topics, clients, filters, queues, consumers, groups)}

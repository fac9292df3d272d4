"""An AMQP door over a real store, beside an MQTT door, with connections in memory and a clock that is a number."""

from __future__ import annotations

from array import array

from pamqp import body, commands, header
from pamqp.commands import Basic, Confirm, Connection, Queue

from core.message import AWAY, StoredBatch
from core.properties import decode_properties
from gateway.amqp.door import AmqpDoor
from gateway.pacing import ALONE
from gateway.settings.models import AmqpSettings
from tests.support import amqp, mqtt
from tests.support.mqtt_door import STORE, DoorPeer, MemoryTransport, World

CAPABILITIES = {"consumer_cancel_notify": True, "authentication_failure_close": True}


class Message:
    """One message as a client sees it."""

    def __init__(self, method, content, text):
        self.method = method
        self.properties = content.properties
        self.body = text

    @property
    def tag(self):
        return self.method.delivery_tag


class Peer(DoorPeer):
    """A client: what it is sent is taken with `take`."""

    def send(self, *methods, channel=1):
        return self.write(*[amqp.method(channel, method) for method in methods])

    def take(self):
        """Return the frames that came since the last time, contents joined to `Message`."""
        frames = amqp.decode_frames(bytes(self.transport.sent))
        self.transport.sent.clear()
        found = []
        while frames:
            _, value = frames.pop(0)
            if isinstance(value, Basic.Deliver | Basic.GetOk | Basic.Return):
                content = frames.pop(0)[1]
                assert isinstance(content, header.ContentHeader)
                text = b""
                while len(text) < content.body_size:
                    piece = frames.pop(0)[1]
                    assert isinstance(piece, body.ContentBody)
                    text += piece.value
                found.append(Message(value, content, text))
            else:
                found.append(value)
        return found

    def call(self, method, channel=1):
        """Send one method and return its one answer."""
        self.send(method, channel=channel)
        (answer,) = self.take()
        return answer

    def messages(self):
        return [one for one in self.take() if isinstance(one, Message)]

    def bodies(self):
        return [one.body for one in self.messages()]

    def publish(self, *bodies, channel=1, **options):
        return self.write(*[amqp.publish(channel, one, **options) for one in bodies])

    def declare(self, queue="q", channel=1, **options):
        """Declare a queue; return the answer."""
        return self.call(Queue.Declare(queue=queue, **options), channel)

    def consume(self, queue="q", tag="c", channel=1, **options):
        self.send(Basic.Consume(queue=queue, consumer_tag=tag, **options), channel=channel)
        return self

    def confirms(self, channel=1):
        answer = self.call(Confirm.Select(), channel)
        assert isinstance(answer, Confirm.SelectOk)
        return self


class AmqpWorld(World):
    """A store, its broker, an MQTT and an AMQP door; `kill` and `open` make a new process of it."""

    def __init__(
        self,
        data_dir,
        *,
        is_sync=False,
        store_settings=STORE,
        auth=None,
        make_engine=None,
        is_prompt=False,
        **settings,
    ):
        self.amqp_settings = AmqpSettings(**settings)
        said = {"store_settings": store_settings, "auth": auth, "make_engine": make_engine}
        super().__init__(data_dir, is_sync=is_sync, is_prompt=is_prompt, **said)

    def start_others(self):
        self.amqp = AmqpDoor(self.broker, self.amqp_settings, self.authenticator)
        self.amqp.start(self.now_ms)
        self.amqp_counts = self.metrics.door("amqp")

    def close(self):
        super().close()
        self.amqp.let_go()

    def accept(self):
        """Return a client whose socket was just accepted."""
        self.conn_id += 1
        transport = MemoryTransport(self.conn_id)
        return Peer(self, transport, self.amqp.connect(transport))

    def log_in(
        self,
        user="guest",
        password="guest",
        *,
        heartbeat=0,
        frame_max=131_072,
        properties=None,
        vhost="/",
        shared=ALONE,
    ):
        """Return a client with an open connection, without a channel."""
        peer = self.accept()
        peer.transport.shared = shared
        peer.write(amqp.PROTOCOL_HEADER)
        said = {"capabilities": CAPABILITIES, **(properties or {})}
        peer.send(Connection.StartOk(said, "PLAIN", f"\0{user}\0{password}", "en_US"), channel=0)
        peer.send(Connection.TuneOk(2_047, frame_max, heartbeat), Connection.Open(vhost), channel=0)
        peer.opening = peer.take()
        return peer

    def client(self, *, channels=1, **options):
        """Return a client with open channels."""
        peer = self.log_in(**options)
        for number in range(1, channels + 1):
            answer = peer.call(commands.Channel.Open(), number)
            assert isinstance(answer, commands.Channel.OpenOk)
        return peer

    def client_of_mqtt(self, client_id, *filters):
        """Return a connected MQTT client, with `publish(topic, body, qos=)`."""
        peer = super().client(client_id, *filters)
        return Device(peer)

    @staticmethod
    def offsets(*values):
        """Return queue offsets as a column."""
        return array("q", values)

    def read_parent(self):
        """Return the properties of all messages on the parent topic."""
        queue_ref = self.broker.find_queue(self.store_settings.parent_topic.encode() + b"/0")
        batch = StoredBatch(100)
        while self.broker.read(queue_ref, 0, batch, 100, 1 << 20) == AWAY:
            self.turn()
        return [
            decode_properties(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
            for i in range(batch.count)
        ]


class Device:
    """An MQTT client of the same gateway."""

    def __init__(self, peer):
        self.peer = peer
        self.number = 0

    def publish(self, topic, text, qos=0):
        self.number += qos
        self.peer.send(mqtt.publish(topic, text, qos=qos, packet_id=self.number))

    def bodies(self):
        return self.peer.bodies()

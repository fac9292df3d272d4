"""Clients at QoS 2 that keep their sessions themselves, over all their connections and processes of the gateway."""

from __future__ import annotations

from collections import Counter

from gateway.mqtt.properties import Property, encode_properties
from tests.support import mqtt
from tests.support.mqtt import puback, pubcomp, publish, pubrec, pubrel

NEVER = 0xFFFFFFFF  # in seconds
IDENTIFIERS = range(1, 30)  # of the publisher; few, so that they are soon used again


def packet_id_of(packet):
    return int.from_bytes(packet[2:4], "big")


class Receiver:
    """A client that takes each packet identifier once until it is released.

    Args:
        world: Where it connects.
        client_id: Its name.
        given: Bodies at QoS 2 are counted here, also those of other clients.
        expiry_s: How long its session outlives a connection; with 0 it begins by a clean session each time.
        receive_max: So many messages may be under way to it; it speaks MQTT 5 then, and 3.1.1 with None.
    """

    def __init__(self, world, client_id, given, *, expiry_s=NEVER, receive_max=None):
        self.world, self.client_id, self.given = world, client_id, given
        self.expiry_s, self.receive_max = expiry_s, receive_max
        self.qos = None  # of its subscription, as it asked for
        self.held = {}  # bodies by packet identifiers that are not released
        self.answers = []  # that are still to be sent
        self.under_way = set()  # packet identifiers on this connection
        self.given_lower = set()  # bodies at QoS 0 and 1
        self.sent_lower = set()  # the same, and those that were under way when a connection broke off
        self.given_retained = Counter()  # bodies at QoS 2 that were told to be retained
        self.lost = set()  # bodies that were sent to this session, over connections that broke off
        self.lost_exact = set()  # those of them at QoS 2, which it is to get
        self.peer = None

    def connect(self):
        """Connect, and return whether there is a session from before."""
        is_clean = self.expiry_s == 0
        connect = mqtt.connect(self.client_id, clean=is_clean)
        if self.receive_max is not None:
            said = [(Property.RECEIVE_MAX, self.receive_max), (Property.SESSION_EXPIRY, self.expiry_s)]
            connect = mqtt.connect_5(self.client_id, clean=is_clean, properties=encode_properties(said))
        self.peer = self.world.dial().send(connect)
        connack = mqtt.cut(bytes(self.peer.transport.sent))[0]
        assert (connack[0], connack[3]) == (0x20, 0)
        if not connack[2]:
            self.held.clear()
            self.lost_exact.clear()
            self.qos = None
        return bool(connack[2])

    def lose_connection(self, count_read):
        """Lose the connection behind so many of the packets that were sent."""
        if self.peer is not None:
            packets = self.peer.take()
            self.read(packets[:count_read])
            lost = [mqtt.parse_publish(one) for one in packets[count_read:] if one[0] >> 4 == 3]
            self.lost |= {self.body_of(one) for one in lost}
            self.sent_lower |= {self.body_of(one) for one in lost if one.qos < 2}
            self.lost_exact |= {self.body_of(one) for one in lost if one.qos == 2}
        self.peer = None
        self.answers = []
        self.under_way.clear()

    def read(self, packets=None):
        for packet in self.peer.take() if packets is None else packets:
            if packet[0] >> 4 == 3:
                self.read_message(packet)
            elif packet[0] >> 4 == 6:
                self.held.pop(packet_id_of(packet), None)
                self.answers.append(pubcomp(packet_id_of(packet)))

    def body_of(self, message):
        return message.body if self.receive_max is None else message.body.removeprefix(b"\0")  # no properties

    def read_message(self, packet):
        message = mqtt.parse_publish(packet)
        body = self.body_of(message)
        if message.qos:
            self.under_way.add(message.packet_id)
            assert self.receive_max is None or len(self.under_way) <= self.receive_max
        if message.qos < 2:
            self.given_lower.add(body)
            self.sent_lower.add(body)
            self.answers += [puback(message.packet_id)] * message.qos
            return
        assert self.held.get(message.packet_id, body) == body, ("its identifier is another's", message.packet_id)
        if message.packet_id not in self.held:
            self.held[message.packet_id] = body
            (self.given_retained if message.retain else self.given)[body] += 1
        self.answers.append(pubrec(message.packet_id))

    def answer(self, count):
        """Send the first answers."""
        sent, self.answers = self.answers[:count], self.answers[count:]
        self.under_way -= {packet_id_of(one) for one in sent if one[0] != 0x50}
        self.peer.send(*sent)

    def subscribe(self, topic_filter, qos):
        """Ask for a QoS, or for no subscription any more by None."""
        self.qos = qos
        is_5 = self.receive_max is not None
        if qos is None:
            self.peer.send((mqtt.unsubscribe_5 if is_5 else mqtt.unsubscribe)(9, topic_filter))
        else:
            self.peer.send((mqtt.subscribe_5 if is_5 else mqtt.subscribe)(9, (topic_filter, qos)))


class Sender:
    """A publisher that goes on with what was not completed."""

    def __init__(self):
        self.count = 0
        self.unreceived = {}  # body by packet identifier
        self.unreleased = []

    def next(self):
        """Return a new message, or nothing while all packet identifiers are in use."""
        used = {*self.unreceived, *self.unreleased}
        free = [one for one in IDENTIFIERS if one not in used]
        if not free:
            return []
        self.count += 1
        self.unreceived[free[0]] = b"%d" % self.count
        return [publish(b"t", b"%d" % self.count, qos=2, packet_id=free[0])]

    def again(self):
        """Return what is sent first over a new connection."""
        packets = [publish(b"t", body, qos=2, packet_id=key, dup=True) for key, body in self.unreceived.items()]
        return packets + [pubrel(one) for one in self.unreleased]

    def answer(self, packets):
        """Return what is sent for what came."""
        answers = []
        for packet in packets:
            packet_id = packet_id_of(packet)
            if packet[0] == 0x50 and packet_id in self.unreceived:
                del self.unreceived[packet_id]
                self.unreleased.append(packet_id)
                answers.append(pubrel(packet_id))
            elif packet[0] == 0x70 and packet_id in self.unreleased:
                self.unreleased.remove(packet_id)
        return answers

    def published(self):
        """Return all bodies so far, each once."""
        return Counter(b"%d" % number for number in range(1, self.count + 1))


class Busy:
    """A durable publisher whose messages go to nobody, and fill the journal of QoS 2."""

    def __init__(self, world):
        self.world = world
        self.packet_id = 0
        self.connect()

    def connect(self):
        self.peer = self.world.connect(b"busy", clean=False)

    def publish(self, count):
        for _ in range(count):
            self.packet_id = self.packet_id % 60_000 + 1
            self.peer.send(publish(b"other", b"", qos=2, packet_id=self.packet_id), pubrel(self.packet_id)).take()

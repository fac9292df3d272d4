"""What is told of each message and each MQTT session, beside what the session's client really did with the message.

Steps come in any order: messages of all kinds, with times to live and too large for some, acknowledgements in any
order, clients that stay away or lose their connection, limits on what waits, sessions that end, and kills. A kill is
the folder as it is at that moment, copied and opened. The gateway tells of each message to the end what became of it:
it is never in doubt, but at QoS 0 where the connection broke off.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from random import Random
from types import SimpleNamespace

import pytest

from core.lmq.queue_name import mqtt_queue_name
from core.message import StoredBatch
from core.pop import lasting_endings
from core.stage import Stage
from gateway.admin.outcomes import Outcomes
from gateway.admin.stored import StoredRecord
from gateway.admin.trail import Trail
from gateway.mqtt.properties import Property, encode_properties
from tests.support import mqtt
from tests.support.lives import told
from tests.support.mqtt_5 import Got, enter
from tests.support.mqtt_door import World

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_LINEAGE_LIVES", "6"))
STEPS = 80
NEVER = 0xFFFFFFFF
SMALL, LARGE = 20, 400  # bytes of a body
PACKET_MAX = 200
WAITING_MAX = 4
AWAY = "not sent as it was not connected"


class Client:
    """A client with a session that stays; it acknowledges what it reads when it is told to."""

    def __init__(self, life, name, qos, *, receive_max=20):
        self.life, self.name, self.qos = life, name, qos
        self.options = [(Property.SESSION_EXPIRY, NEVER), (Property.RECEIVE_MAX, receive_max)]
        self.began_at = 0  # so many messages were published before its subscription
        self.received, self.acknowledged = set(), set()
        self.received_at_0 = set()
        self.acknowledged_since_kill = set()
        self.received_at_2, self.completed = {}, set()  # at QoS 2: by packet identifier until it is released; for good
        self.missed = set()  # bodies that were published while it was away
        self.answers = []
        self.peer = None

    def connect(self, *, clean=False):
        if self.peer is None:
            packet_max = self.life.chance.choice([[], [(Property.PACKET_BYTES_MAX, PACKET_MAX)]])
            said = encode_properties([*self.options, *packet_max])
            self.peer = self.life.world.dial().send(mqtt.connect_5(self.name, clean=clean, properties=said))

    def subscribe(self):
        self.began_at = len(self.life.bodies)
        self.peer.send(mqtt.subscribe_5(1, (b"t", self.qos)))

    def change_qos(self, qos):
        """Subscribe once more; what came before was sent as it was."""
        self.read()
        self.qos = qos
        self.peer.send(mqtt.subscribe_5(1, (b"t", qos)))
        self.read()

    def end_session(self):
        """Begin anew: nothing from before is owed."""
        self.lose_connection()
        self.connect(clean=True)
        self.subscribe()
        self.received, self.acknowledged, self.acknowledged_since_kill = set(), set(), set()
        self.received_at_0, self.completed = set(), set()
        self.received_at_2.clear()

    def read(self):
        while packets := self.peer.take():  # an answer may make room for more
            for packet in packets:
                self.read_one(packet)

    def read_one(self, packet):
        if packet[0] >> 4 == 3:
            got = Got(packet)
            self.received.add(got.body)
            if got.qos:
                self.received_at_0.discard(got.body)
                self.answers.append((got.qos, got.packet_id, got.body))
            else:
                self.received_at_0.add(got.body)
                self.acknowledged.discard(got.body)
        elif packet[0] >> 4 == 6:
            packet_id = int.from_bytes(packet[2:4], "big")
            self.completed |= {*filter(None, [self.received_at_2.pop(packet_id, None)])}
            self.peer.send(mqtt.pubcomp(packet_id))

    def acknowledge(self, chance, count):
        self.read()
        if chance.random() < 0.5:
            chance.shuffle(self.answers)
        for qos, packet_id, body in self.answers[:count]:
            self.acknowledged.add(body)
            self.acknowledged_since_kill.add(body)
            if qos == 2:
                self.received_at_2[packet_id] = body
            self.peer.send(mqtt.puback(packet_id) if qos == 1 else mqtt.pubrec(packet_id))
        del self.answers[:count]
        self.read()

    def lose_connection(self):
        if self.peer is not None:
            self.read()
            self.peer.vanish()
        self.peer, self.answers = None, []


class Life:
    """The history of some sessions, and what is told of it."""

    def __init__(self, seed, folder):
        self.chance = Random(seed)
        self.folder = folder
        limit = self.chance.choice([0, WAITING_MAX])
        self.world = World(folder / "0", queued_count_max=limit, is_prompt=seed % 2 == 1)
        self.since_ms = self.world.now_ms
        self.bodies = []
        self.qos = {}
        self.kills = 0
        self.clients = [
            Client(self, b"one", 1),
            Client(self, b"slow", 1, receive_max=2),
            Client(self, b"exact", 2),
            Client(self, b"loose", 0),
        ]
        self.watcher = enter(self.world, b"watcher", (Property.SESSION_EXPIRY, NEVER), filters=((b"t", 1),))
        self.publisher = enter(self.world, b"publisher")
        for one in self.clients:
            one.connect()
            if self.chance.random() < 0.7:
                one.subscribe()
            else:
                one.began_at = NEVER
        self.pass_time()

    # Steps

    def pass_time(self):
        self.world.now_ms += self.chance.choice([1, 500, 3_000])
        self.world.turn()

    def publish(self):
        for _ in range(self.chance.randrange(1, 4)):
            body = b"%d." % len(self.bodies)
            body += bytes(self.chance.choice([SMALL, SMALL, LARGE]) - len(body))
            qos = self.chance.choice([0, 1, 1, 1, 2, 2])
            lives = [(Property.MESSAGE_EXPIRY, self.chance.randrange(1, 5))] if self.chance.random() < 0.3 else []
            self.bodies.append(body)
            self.qos[body] = qos
            for one in self.clients:
                if one.peer is None and not one.qos:
                    one.missed.add(body)
            packet = mqtt.publish_5(b"t", body, qos=qos, packet_id=qos and 1, properties=encode_properties(lives))
            self.publisher.send(packet, *([mqtt.pubrel(1)] if qos == 2 else []))
            self.publisher.take()
        self.world.now_ms += 1

    def choose(self):
        one = self.chance.choice(self.clients)
        one.connect()
        if one.began_at == NEVER:
            one.subscribe()
        return one

    def acknowledge(self):
        self.choose().acknowledge(self.chance, self.chance.randrange(1, 6))

    def stay_away(self):
        self.choose().lose_connection()

    def change_qos(self):
        self.choose().change_qos(self.chance.randrange(3))

    def end_session(self):
        self.choose().end_session()

    def kill(self):
        for one in self.clients:
            one.lose_connection()
            one.acknowledged_since_kill = set()
        self.kills += 1
        self.world.data_dir = shutil.copytree(self.world.data_dir, self.folder / str(self.kills))
        self.world.close()
        self.world.now_ms += 10
        self.since_ms = self.world.now_ms
        self.world.open()
        self.publisher = enter(self.world, b"publisher")
        self.world.now_ms += 10

    # What is told

    def check(self):
        for one in self.clients:
            if one.peer is not None:
                one.read()
        view = SimpleNamespace(broker=self.world.broker, trail=Trail(), since_ms=self.since_ms)
        batch, key = StoredBatch(64), mqtt_queue_name(b"t")
        queue_ref, offset = self.world.broker.find_queue(key), 0
        while self.world.broker.read(queue_ref, offset, batch, 64, 1 << 20) > 0:
            for i in range(batch.count):
                record = bytes(batch.buf[batch.record_start[i] : batch.record_end[i]])
                stored = StoredRecord(record, batch, i)
                body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
                self.check_message(Outcomes(view, stored), key, batch.queue_offset[i], body)
            offset = batch.next_offset

    def check_message(self, outcomes, key, offset, body):
        clients = {one.name.decode(): one for one in self.clients}
        for fate in self.world.door.inventory().fates(key, offset):
            one = None if fate is None else clients.get(fate.reader)
            if one is not None:
                told = asyncio.run(outcomes.tell(fate))
                ways = [None] if fate.stage is not Stage.DONE else told["outcome"].split(" or ")
                assert any(self.is_true(one, body, way) for way in ways), (one.name, body, told, self.kills)
                is_doubtful = AWAY in ways and (body in one.missed or body in one.received_at_0)
                assert len(ways) == 1 or is_doubtful, (one.name, body, told)

    def is_true(self, one, body, way):
        """Return whether a client's own knowledge allows that a message ended in a way for it."""
        is_later = self.bodies.index(body) < one.began_at
        is_lost = not is_later and body not in one.acknowledged_since_kill
        return {
            None: not is_later and body not in one.completed,
            "acknowledged": body in one.acknowledged,
            "sent": body in one.received_at_0,
            "subscribed later": is_later,
            AWAY: not is_later and body in one.missed,
            "dropped: it was too large for its client": is_lost and len(body) == LARGE,
            "dropped: too many waited for it": is_lost,
            "expired": is_lost,
        }.get(way, False)

    def run(self):
        steps = [self.publish] * 6 + [self.acknowledge] * 6 + [self.stay_away] * 2 + [self.pass_time] * 2
        steps += [self.end_session, self.kill, self.change_qos]
        for _ in range(STEPS):
            self.chance.choice(steps)()
            if self.chance.random() < 0.2:
                self.check()
        for _ in range(2):
            self.check()
            self.kill()


@pytest.fixture(autouse=True)
def small_journal(monkeypatch):
    monkeypatch.setattr(lasting_endings, "COMPACT_BYTES_MIN", 2_000)


@pytest.mark.slow
@pytest.mark.here(reason="reads the queue by itself")
def test_what_is_told_of_a_message_is_what_its_client_did(tmp_path):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed))
        with told(seed, life, lambda life=life: life.world.close()):
            life.run()

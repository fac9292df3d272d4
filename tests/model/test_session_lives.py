"""Sessions of MQTT 3.1.1 and 5 at QoS 0 to 2, held against a plain model.

Steps come in any order: clients that connect in either version, are taken over, leave, vanish or fall silent; sessions
that end or expire; subscriptions that come, change and go, shared ones too; messages and wills with their properties,
retained ones; time that passes; kills and clean restarts. A kill is the folder as it is at that moment, copied and
opened.

`make torture` runs many more of these lives, from a number of its own each time.
"""

from __future__ import annotations

import os
import shutil
from random import Random

import pytest
from pamqp.commands import Basic, Queue

from gateway.mqtt.properties import Property
from gateway.settings.models import AmqpSettings
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.engines import MAKERS
from tests.support.exact_clients import NEVER
from tests.support.lives import told
from tests.support.mqtt import DISCONNECT, disconnect_5
from tests.support.mqtt_5 import encoded
from tests.support.mqtt_door import World
from tests.support.session_clients import Client
from tests.support.session_oracle import LARGE_BYTES, WAITING, Message, Oracle

FIRST = int(os.environ.get("TORTURE_FIRST", "0"))
LIVES = int(os.environ.get("TORTURE_SESSION_LIVES", "6"))
STEPS = 80
TOPICS = [b"a/0", b"a/1", b"b/0", b"c/0", b"c/1"]
OVERLAPPING = [b"a/+", b"a/0", b"#", b"+/0", b"c/#", b"$share/g/a/+", b"$share/h/#", b"will/+", b"b/0"]
APART = [b"a/+", b"b/#", b"$share/g/c/+", b"will/#"]
EXPIRIES = [0, 5, 60, NEVER]


class BothWorld(AmqpWorld):
    """An MQTT door with settings of its own, and an AMQP door."""

    def __init__(self, data_dir, *, make_engine, **settings):
        self.amqp_settings = AmqpSettings()
        World.__init__(self, data_dir, make_engine=make_engine, **settings)


class Life:
    """The history of some clients, and of an AMQP queue that has all messages."""

    def __init__(self, seed, folder, make_engine):
        self.chance = Random(seed)
        self.folder = folder
        self.inflight_max = self.chance.choice([1, 2, 5, 2_048])
        self.strategy = self.chance.choice(["round_robin", "round_robin", "sticky", "hash_topic", "hash_client_id"])
        settings = {"inflight_max": self.inflight_max, "sys_interval_s": 0, "shared_strategy": self.strategy}
        settings["is_prompt"] = seed % 2 == 1
        self.world = BothWorld(folder / "0", make_engine=make_engine, **settings)
        self.oracle = Oracle(NEVER)
        self.is_5_only = self.chance.random() < 0.5
        self.filters = OVERLAPPING if self.is_5_only else APART
        self.is_in_order = self.chance.random() < 0.5
        self.clients = [Client(self, b"c%d" % i) for i in range(self.chance.randint(1, 4))]
        self.wills = {}  # message and moment by client identifier
        self.kills = 0
        self.count = 0
        self.connect_service()
        self.service.declare("all", durable=True)
        self.service.call(Queue.Bind(queue="all", exchange="amq.topic", routing_key="#"))
        for one in self.clients:
            self.connect(one)

    # Clients come and go

    def connect_service(self):
        """Let the client of AMQP connect."""
        self.service = AmqpWorld.client(self.world).confirms()

    def connect(self, client):
        chance = self.chance
        is_5 = self.is_5_only or chance.random() < 0.5
        is_clean = chance.random() < 0.2
        expiry_s = chance.choice(EXPIRIES) if is_5 else 0 if is_clean else NEVER
        said = {"keep_alive_s": chance.choice([0, 0, 10])}
        if is_5:
            said["receive_max"] = chance.choice([0, 0, 1, 3])
            said["small"] = chance.random() < 0.2
            said["alias_max"] = chance.choice([0, 0, 1, 4])
        if chance.random() < 0.5:
            message = self.make_message(b"will/" + client.client_id, has_properties=is_5)
            message.sender = client.client_id
            said["will"] = (message, chance.choice([0, 0, 3, 30, 100]) if is_5 else 0)
        client.connect(is_5=is_5, is_clean=is_clean, expiry_s=expiry_s, **said)
        self.observe()

    def choose(self):
        """Return a client that is connected, by now."""
        client = self.chance.choice(self.clients)
        if client.peer is None:
            self.connect(client)
        return client

    def reconnect(self):
        """Connect, also where an older connection is open."""
        self.connect(self.chance.choice(self.clients))

    def vanish(self):
        client = self.choose()
        peer = client.peer
        client.lose()
        peer.vanish()

    def leave(self):
        client = self.choose()
        expiry_s, has_will, packet = None, False, DISCONNECT
        if client.is_5:
            has_will = self.chance.random() < 0.3
            items = []
            if client.expiry_s and self.chance.random() < 0.4:
                expiry_s = self.chance.choice(EXPIRIES)
                items = [(Property.SESSION_EXPIRY, expiry_s)]
            packet = disconnect_5(4 if has_will else 0, encoded(*items))
        peer = client.peer
        client.lose(has_will=has_will, expiry_s=expiry_s)
        peer.send(packet)
        assert peer.is_closed

    # Wills

    def leave_will(self, client, live_s):
        message, delay_s = client.will
        delay_s = min(delay_s, live_s)
        if delay_s:
            self.wills[client.client_id] = (message, self.world.now_ms + 1_000 * delay_s)
        else:
            self.oracle.publish(message, self.world.now_ms)

    def cancel_will(self, client):
        self.wills.pop(client.client_id, None)

    def hasten_will(self, client):
        if client.client_id in self.wills:
            message, _ = self.wills.pop(client.client_id)
            self.oracle.publish(message, self.world.now_ms)

    # Messages

    def make_message(self, topic, *, has_properties):
        chance = self.chance
        self.count += 1
        body = b"%d" % self.count
        if chance.random() < 0.1:
            body = body.ljust(LARGE_BYTES, b"x")
        message = Message(topic, body, chance.choice([0, 1, 1, 2]), is_retained=chance.random() < 0.3)
        if message.is_retained and chance.random() < 0.2:
            message.body = b""
        if has_properties:
            message.expiry_s = chance.choice([None, None, 2, 20])
            said = []
            if chance.random() < 0.3:
                said.append((Property.CONTENT_TYPE, b"x/%d" % self.count))
            if chance.random() < 0.3:
                said += [(Property.RESPONSE_TOPIC, b"r/%d" % self.count), (Property.CORRELATION, b"\x00\xff")]
            if chance.random() < 0.3:
                said += [(Property.USER, (b"k", b"1")), (Property.USER, (b"k", b"2")), (Property.PAYLOAD_FORMAT, 1)]
            message.said = tuple(said)
        return message

    def publish(self):
        client = self.choose()
        for _ in range(self.chance.randint(1, 3)):
            message = self.make_message(self.chance.choice(TOPICS), has_properties=client.is_5)
            message.sender = client.client_id
            self.oracle.publish(message, self.world.now_ms)
            client.publish(message)

    def publish_by_amqp(self):
        """Publish from AMQP; a message that is not persistent is at QoS 0."""
        self.count += 1
        topic = self.chance.choice(TOPICS)
        message = Message(topic, b"%d" % self.count, self.chance.choice([0, 1]))
        said = {"delivery_mode": message.qos + 1}
        if self.chance.random() < 0.5:
            said["content_type"] = "x/amqp"
            message.said = ((Property.CONTENT_TYPE, b"x/amqp"),)
        if self.chance.random() < 0.3:
            message.expiry_s = 20
            said["expiration"] = "20000"
        self.oracle.publish(message, self.world.now_ms)
        key = topic.replace(b"/", b".").decode()
        self.service.write(amqp.publish(1, message.body, exchange="amq.topic", key=key, **said))
        self.observe()
        assert [type(one) for one in self.service.take()] == [Basic.Ack]

    def publish_unanswered(self):
        """Publish, and be killed before that is synced: it may be there or not."""
        client = self.choose()
        self.world.flushes_by_itself = False
        for _ in range(self.chance.randint(1, 3)):
            message = self.make_message(self.chance.choice(TOPICS), has_properties=client.is_5)
            message.sender, message.is_certain = client.client_id, False
            self.oracle.publish(message, self.world.now_ms)
            client.publish(message)
        self.world.flushes_by_itself = True
        self.kill()

    def subscribe(self):
        client, chance = self.choose(), self.chance
        client.subscribe(
            chance.choice(self.filters),
            chance.choice([0, 1, 1, 2]),
            no_local=chance.random() < 0.2,
            keeps_retain=chance.random() < 0.3,
            handling=chance.choice([0, 0, 1, 2]),
        )

    def unsubscribe(self):
        """Unsubscribe; where a commit begins at once, a kill may come when no other was begun: it has all of that."""
        client, world = self.choose(), self.world
        if client.session.subscriptions:
            is_killed = world.is_prompt and client.session.is_durable and self.chance.random() < 0.3
            topic_filter = self.chance.choice(list(client.session.subscriptions))
            if is_killed:
                self.end_flushes()
                world.flushes_by_itself = False
            client.unsubscribe(topic_filter, is_answered=not is_killed)
            if is_killed:
                self._be_killed()

    def acknowledge(self):
        self.choose().acknowledge(self.chance.randint(1, 6), is_in_order=self.is_in_order)

    # Time

    def wait(self):
        world, oracle = self.world, self.oracle
        world.now_ms += self.chance.choice([300, 1_700, 8_000, 40_000, 90_000]) + self.chance.randrange(1_000)
        for client in self.clients:
            if client.peer is None:
                continue
            if client.keep_alive_s:
                if self.chance.random() < 0.6:
                    client.peer.send(b"\xc0\0")
                    client.observe()
                    client.take_answer(0xD0)
                peer = client.peer
                before = len(client.answers)
                peer.handler.on_timer(world.now_ms)
                if peer.is_closed:
                    client.lose()
                    peer.handler.on_closed(world.now_ms)
                    del client.answers[before:]
        world.turn()
        for client_id in [key for key, (_, due_ms) in self.wills.items() if due_ms <= world.now_ms]:
            message, _ = self.wills.pop(client_id)
            oracle.publish(message, world.now_ms)
        for interval in world.door.intervals():
            interval.work(world.now_ms)
        world.turn()
        for session in [*oracle.sessions.values()]:
            if session.is_over(world.now_ms, NEVER):
                oracle.end_session(session)
        world.door.tend(world.now_ms)
        world.turn()
        self.observe()

    # Ends of the process

    def kill(self):
        self.end_flushes()
        self._be_killed()

    def end_flushes(self):
        """Have all that was written on the disk, as is done at intervals."""
        self.observe()
        self.world.engine.durability.keep_all()
        self.world.turn()

    def _be_killed(self):
        self.kills += 1
        self.world.data_dir = shutil.copytree(self.world.data_dir, self.folder / str(self.kills))
        self.world.close()
        self.world.flushes_by_itself = True
        self._start_again()

    def _start_again(self):
        leaving = []
        for client in self.clients:
            if client.peer is not None and client.will is not None:
                session = client.session
                leaving.append((client, session.expiry_s if session.is_durable else 0))
        self.oracle.kill(self.world.now_ms)
        for client, live_s in leaving:
            self.leave_will(client, live_s)
            client.will = None
        for client in self.clients:
            client.die()
        self.world.open()
        self.begin_again()

    def begin_again(self):
        """Go on with a new process, once it has removed the sessions that ended with the one before."""
        self.wills = dict(sorted(self.wills.items()))  # as they are written down
        self.world.door.tend(self.world.now_ms)
        self.world.turn()
        self.connect_service()

    def restart(self):
        self.observe()
        for client in self.clients:
            if client.peer is not None:
                client.answers.clear()
        world = self.world
        for client in [one for one in self.clients if one.peer is not None]:
            peer = client.peer
            client.lose()
            peer.handler.shut_down(world.now_ms)
            world.turn()
        world.door.stop(world.now_ms)
        world.turn()
        world.close()
        self.oracle.kill(world.now_ms)
        for client in self.clients:
            client.die()
        world.open()
        self.begin_again()

    # The end

    def observe(self):
        for client in self.clients:
            client.observe()

    def run(self):
        steps = (
            [self.publish] * 6
            + [self.publish_by_amqp, self.publish_unanswered]
            + [self.acknowledge] * 5
            + [self.subscribe] * 4
            + [self.unsubscribe]
        )
        steps += [self.reconnect] * 2 + [self.vanish] * 2 + [self.leave, self.wait, self.wait, self.kill, self.restart]
        for _ in range(STEPS):
            self.chance.choice(steps)()
            self.check()
        self.complete()

    def check(self):
        self.observe()
        for client in self.clients:
            client.check_idle()
        for group in self.oracle.groups.values() if self.strategy == "round_robin" else ():
            if any(self.has_room(one) for one in group.members):
                self.check_handed_out(group)

    def has_room(self, member):
        """Return whether a member of a group takes more now."""
        client = next(one for one in self.clients if one.client_id == member.session.client_id)
        is_free = not (member.qos or client.again)
        return client.peer is not None and (is_free or len(client.in_flight) < client.window)

    def check_handed_out(self, group):
        """Check that nothing waits for the members of a group."""
        now_ms = self.world.now_ms
        left = [one for one in group.copies if one.state == WAITING and not one.may_come]
        left = [one.message.body for one in left if not one.message.is_expired(now_ms)]
        assert not left, ("not handed out", group.topic_filter, left)

    def complete(self):
        """Let all clients come back and take all that there is."""
        for client in self.clients:
            if client.session is not None:
                is_5 = self.is_5_only
                client.connect(is_5=is_5, is_clean=False, expiry_s=NEVER)
        is_going_on = True
        while is_going_on:
            self.check()
            is_going_on = False
            for client in self.clients:
                if client.peer is not None and client.in_flight:
                    is_going_on = True
                    client.acknowledge(100, is_in_order=True)
        self.check()
        for group in self.oracle.groups.values():
            self.check_handed_out(group)
        self.check_queue()

    def check_queue(self):
        """Check that the AMQP queue has each message once and in order, but for those that ended or are not certain."""
        self.service.send(Basic.Consume(queue="all", consumer_tag="c", no_ack=True))
        came = [one for one in self.service.messages() if one.body]
        published = [one for one in self.oracle.published if one.body]  # else they are not told apart
        for topic in sorted({one.topic for one in published}):
            key = topic.replace(b"/", b".").decode()
            bodies = iter([one.body for one in came if one.method.routing_key == key])
            body = next(bodies, None)
            for message in [one for one in published if one.topic == topic]:
                if message.body == body:
                    body = next(bodies, None)
                else:
                    is_sure = message.is_certain and not message.is_expired(self.world.now_ms)
                    assert not is_sure, ("not queued", message.topic, message.body)
            assert body is None, ("not published, or out of order", topic, body)


@pytest.mark.slow
@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
def test_sessions_get_what_is_promised_whatever_happens(tmp_path, make_engine):
    for seed in range(FIRST, FIRST + LIVES):
        life = Life(seed, tmp_path / str(seed), make_engine)
        with told(seed, life, lambda life=life: life.world.close()):
            life.run()

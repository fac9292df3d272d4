"""What a user may not read or send at one door, tried at every door by every name that it has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pamqp.commands import Basic, Channel, Exchange, Queue

from core.lmq.queue_name import amqp_queue_name, mqtt_queue_name
from core.message import AWAY
from gateway.settings.models import MqttSettings
from lmq.remoting.signature import AccessKeys
from tests.support import mqtt
from tests.support.amqp_door import AmqpWorld
from tests.support.logins import quick_hash
from tests.support.mqtt_door import World
from tests.support.rocketmq import request_frame, send_frame, signed
from tests.support.rocketmq_door import Peer as RocketmqPeer, make_door as make_rocketmq_door

BOB = AccessKeys("bob", "bob's own secret")
AUTH = {
    "users": {"bob": {"password_hash": quick_hash("secret"), "secret": BOB.secret_key}},
    "rules": [
        {"permit": "deny", "users": ["bob"], "topics": ["secret/#", "$events/#"]},
        {"permit": "deny", "users": ["bob"], "names": ["hidden", "HIDDEN", "hidden-group"]},
    ],
}


class EveryDoor(AmqpWorld):
    """All doors in memory; there is a message of each kind that bob may not read."""

    def open(self):
        super().open()
        self.rocketmq = make_rocketmq_door(self)
        self.site = SimpleNamespace(door=self.rocketmq, turn=self.turn, now_ms=self.now_ms, engine=self.engine)

    def fill(self):
        self.admin = self.client()
        for method in (
            Queue.Declare(queue="hidden"),
            Queue.Declare(queue="mine"),
            Queue.Bind(queue="hidden", exchange="amq.topic", routing_key="secret.#"),
            Exchange.Declare(exchange="hidden", exchange_type="fanout"),
            Exchange.Declare(exchange="open", exchange_type="fanout"),
            Exchange.Declare(exchange="picked", exchange_type="headers"),
        ):
            self.admin.call(method)
        self.listener = World.client(self, b"listener", (b"secret/#", 1), (b"#", 1), clean=False)
        World.client(self, b"device").send(mqtt.publish(b"secret/x", b"told", retain=True))
        self.admin.publish(b"work", key="hidden")
        self.nobody = RocketmqPeer(self.site, 900, b"\x7f\0\0\1\0\0\x2a\x9f")
        assert self.nobody.send(b"native", topic="HIDDEN", properties="KEYS\x01k\x02").code == 0
        self.listener.take()

    def bob_of_mqtt(self, client_id=b"bob", **options):
        return World.connect(self, client_id, user=b"bob", password=b"secret", **options)

    def bob_of_amqp(self):
        return self.client(user="bob", password="secret")


@pytest.fixture
def world(tmp_path, engine_maker):
    made = EveryDoor(tmp_path, auth=AUTH, make_engine=engine_maker)
    made.fill()
    yield made
    made.close()


@pytest.mark.parametrize(
    "topic_filter",
    [
        b"secret/#",
        b"secret/x",
        b"#",
        b"+/x",
        b"$share/g/secret/#",
        b"$share/g/#",
        b"$queue/secret/x",
        b"$exclusive/secret/x",
        b"$replay/first/secret/#",
        b"$replay/first/#",
        b"$events/#",
        b"$events/login/+",
        b"$share/g/$events/#",
        b"$replay/first/$events/#",
    ],
)
def test_mqtt_subscription(world, topic_filter):
    peer = world.bob_of_mqtt()
    peer.take()
    peer.send(mqtt.subscribe(1, (topic_filter, 1)))
    assert peer.take() == [b"\x90\x03\x00\x01\x80"]
    World.client(world, b"other").send(mqtt.publish(b"secret/x", b"more"))
    assert peer.take() == []


def test_mqtt_topics_that_are_rewritten(world):
    world.door.set_publishing(
        MqttSettings(rewrite=[{"source": "by/#", "pattern": "^by/(.+)$", "destination": "secret/$1"}])
    )
    peer = world.bob_of_mqtt()
    peer.take()
    peer.send(mqtt.subscribe(1, (b"by/#", 1)))
    assert peer.take() == [b"\x90\x03\x00\x01\x80"]
    peer.send(mqtt.publish(b"by/x", b"forged"))
    world.bob_of_mqtt(b"willing", will=(b"by/x", b"forged", 0, False)).vanish()
    assert heard(world) == []


def test_mqtt_session_of_before(world):
    world.authenticator.reload(*reloaded(world, rules=[]))
    peer = world.bob_of_mqtt(clean=False)
    peer.send(mqtt.subscribe(1, (b"secret/#", 1), (b"open/#", 1)))
    peer.vanish()
    world.client_of_mqtt(b"other").publish(b"secret/x", b"waits")
    world.client_of_mqtt(b"other").publish(b"open/x", b"open")
    world.authenticator.reload(*reloaded(world, rules=AUTH["rules"]))
    again = world.bob_of_mqtt(clean=False)
    assert again.bodies() == [b"open"]


def reloaded(world, **changes):
    settings = world.auth.model_validate({**AUTH, **changes})
    return settings, world.authenticator.make_users(settings, {})


AMQP_READS = {
    "queue bound by the denied topic": Queue.Bind(queue="mine", exchange="amq.topic", routing_key="secret.#"),
    "queue bound by all topics": Queue.Bind(queue="mine", exchange="amq.topic", routing_key="#"),
    "queue bound by the last level": Queue.Bind(queue="mine", exchange="amq.topic", routing_key="#.x"),
    "queue bound by any first level": Queue.Bind(queue="mine", exchange="amq.topic", routing_key="*.x"),
    "exchange bound by the denied topic": Exchange.Bind(destination="open", source="amq.topic", routing_key="secret.x"),
    "exchange bound by all topics": Exchange.Bind(destination="open", source="amq.topic", routing_key="#"),
    "choice by headers bound by the denied topic": Exchange.Bind(
        destination="picked", source="amq.topic", routing_key="secret.#"
    ),
    "choice by headers bound by all topics": Exchange.Bind(
        destination="picked", source="amq.topic", routing_key="#", arguments={"x-match": "any"}
    ),
    "queue bound to the denied exchange": Queue.Bind(queue="mine", exchange="hidden", routing_key=""),
    "exchange bound to the denied exchange": Exchange.Bind(destination="open", source="hidden", routing_key=""),
    "consume": Basic.Consume(queue="hidden"),
    "consume again from the first": Basic.Consume(queue="hidden", arguments={"x-stream-offset": "first"}),
    "get": Basic.Get(queue="hidden"),
    "purge": Queue.Purge(queue="hidden"),
    "delete": Queue.Delete(queue="hidden"),
    "declare with dead letters": Queue.Declare(queue="hidden", arguments={"x-dead-letter-exchange": "open"}),
}


@pytest.mark.parametrize("name", AMQP_READS)
def test_amqp_reading(world, name):
    answer = world.bob_of_amqp().call(AMQP_READS[name])
    assert answer.reply_code == 403
    assert answer.reply_text.startswith("ACCESS_REFUSED - ")
    assert "refused for user 'bob'" in answer.reply_text


def ask(world, code, body=b"", **ext):
    """Return the code of what a request of bob's is answered with."""
    peer = RocketmqPeer(world.site, 901, b"\x7f\0\0\1\0\0\x2a\x9f")
    peer.give(signed(request_frame(code, body, opaque=7, **ext), BOB))
    world.turn()
    answers = [answer for answer in peer.take() if answer.is_response]
    return answers[0].code if answers else None


PULL = {"consumerGroup": "g", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0}
PULL |= {"suspendTimeoutMillis": 1_000, "subscription": "*", "subVersion": 0}
POP = {"consumerGroup": "g", "queueId": 0, "maxMsgNums": 8, "invisibleTime": 60_000, "pollTime": 0, "bornTime": 0}
POP |= {"initMode": 0}
ROCKETMQ_NAMES = {
    "the filter's light queue": mqtt_queue_name(b"secret/#"),
    "the light queue of all topics": mqtt_queue_name(b"#"),
    "the AMQP queue's light queue": amqp_queue_name(b"/", b"hidden"),
    "a long filter's light queue": mqtt_queue_name(b"secret/" + b"x" * 200),
    "what the AMQP queue refused": b"%LMQ%amqp%|r|2f%hidden",
    "the parent topic": b"LMQ_PARENT",
    "the topic": b"HIDDEN",
    "what the group gives back": b"%RETRY%hidden-group",
    "the group's dead letters": b"%DLQ%hidden-group",
    "what waits for later": b"rmq_sys_wheel_timer",
    "what waits for its transaction": b"RMQ_SYS_TRANS_HALF_TOPIC",
}


@pytest.mark.parametrize("name", ROCKETMQ_NAMES)
def test_rocketmq_pull(world, name):
    topic = ROCKETMQ_NAMES[name].decode()
    for code in (11, 361):
        assert ask(world, code, topic=topic, **PULL) in {16, 17}


@pytest.mark.parametrize("name", ROCKETMQ_NAMES)
def test_rocketmq_pop(world, name):
    assert ask(world, 200050, topic=ROCKETMQ_NAMES[name].decode(), **POP) in {16, 17}


@pytest.mark.parametrize("topic", ["HIDDEN", "LMQ_PARENT", mqtt_queue_name(b"secret/#").decode()])
def test_rocketmq_query_by_key(world, topic):
    times = {"beginTimestamp": 0, "endTimestamp": 1 << 50, "maxNum": 32}
    assert ask(world, 12, topic=topic, key="k", **times) == 16
    assert ask(world, 12, topic=topic, key="k", _UNIQUE_KEY_QUERY="true", **times) == 16


def test_rocketmq_view_and_send_back_by_id(world):
    seen = []
    batch = world.amqp.vhost.stored
    for key in (b"LMQ_PARENT/0", *[b"HIDDEN/%d" % number for number in range(8)]):
        ref = world.broker.find_queue(key)
        if ref >= 0:
            while world.broker.read(ref, 0, batch, 8, 1 << 20) == AWAY:
                world.turn()
            seen += [batch.physical_offset[i] for i in range(batch.count)]
            batch.clear()
    assert len(seen) == 3
    for place in seen:
        assert ask(world, 33, offset=place) == 16
        back = {"offset": place, "group": "g", "delayLevel": 0, "originMsgId": "", "originTopic": "T"}
        assert ask(world, 36, unitMode="false", maxReconsumeTimes=16, **back) == 16


def test_what_is_allowed_is_read_at_each_door(world):
    device = world.bob_of_mqtt()
    device.take()
    device.send(mqtt.subscribe(1, (b"open/#", 0)))
    assert device.take() == [b"\x90\x03\x00\x01\x00"]
    peer = world.bob_of_amqp()
    assert isinstance(peer.call(Queue.Bind(queue="mine", exchange="amq.topic", routing_key="open.#")), Queue.BindOk)
    World.client(world, b"other").send(mqtt.publish(b"open/x", b"told"))
    assert device.bodies() == [b"told"]
    assert peer.consume("mine").bodies() == [b"told"]
    name = mqtt_queue_name(b"open/#").decode()
    assert ask(world, 11, topic=name, **PULL) == 0


# Sending

AMQP_SENDS = {
    "to the topic": {"exchange": "amq.topic", "key": "secret.x"},
    "to the topic, with an open one": {"exchange": "amq.topic", "key": "open.x", "headers": {"CC": ["secret.x"]}},
    "to the topic, unseen": {"exchange": "amq.topic", "key": "open.x", "headers": {"BCC": ["secret.x"]}},
    "to the denied exchange": {"exchange": "hidden", "key": ""},
}


@pytest.mark.parametrize("name", AMQP_SENDS)
def test_amqp_publish(world, name):
    (answer,) = world.bob_of_amqp().publish(b"forged", **AMQP_SENDS[name]).take()
    assert answer.reply_code == 403
    assert heard(world) == []


AMQP_WAYS = {
    "dead letters to the topic": Queue.Declare(
        queue="q", arguments={"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "secret.x"}
    ),
    "dead letters to any topic": Queue.Declare(queue="q", arguments={"x-dead-letter-exchange": "amq.topic"}),
    "dead letters to the denied exchange": Queue.Declare(queue="q", arguments={"x-dead-letter-exchange": "hidden"}),
    "an alternate that is the topics": Exchange.Declare(exchange="e", arguments={"alternate-exchange": "amq.topic"}),
    "an exchange that leads to the topics": Exchange.Bind(destination="amq.topic", source="open", routing_key=""),
    "an exchange that leads to the denied one": Exchange.Bind(destination="hidden", source="open", routing_key=""),
    "a binding to the denied queue": Queue.Bind(queue="hidden", exchange="open", routing_key=""),
}


@pytest.mark.parametrize("name", AMQP_WAYS)
def test_amqp_way_to_what_may_not_be_sent_to(world, name):
    assert world.bob_of_amqp().call(AMQP_WAYS[name]).reply_code == 403


def heard(world):
    return [body for body in world.listener.bodies() if body != b"told"]


@pytest.mark.parametrize("topic", [b"secret/x", b"$delayed/0/secret/x"])
def test_mqtt_publish(world, topic):
    peer = world.bob_of_mqtt()
    peer.send(mqtt.publish(topic, b"forged", qos=1, packet_id=1))
    assert peer.take()[-1] == mqtt.puback(1)  # MQTT-3.3.5-2
    assert heard(world) == []


def test_mqtt_will(world):
    world.bob_of_mqtt(will=(b"secret/x", b"forged", 0, False)).vanish()
    assert heard(world) == []


ROCKETMQ_SENDS = {
    "to the topic of the topic space": {"topic": "LMQ_PARENT", "properties": "LMQ_TOPIC\x01secret/x\x02"},
    "to the filter's light queue": {"topic": mqtt_queue_name(b"secret/#").decode()},
    "to a filter that is met by it": {"topic": mqtt_queue_name(b"#").decode()},
    "to a long filter's light queue": {"topic": mqtt_queue_name(b"secret/" + b"x" * 200).decode()},
    "to the AMQP queue": {"topic": amqp_queue_name(b"/", b"hidden").decode()},
    "to the topic": {"topic": "HIDDEN"},
    "by dispatch": {"properties": f"INNER_MULTI_DISPATCH\x01{mqtt_queue_name(b'secret/#').decode()}\x02"},
    "later": {"topic": "HIDDEN", "properties": "DELAY\x011\x02"},
    "for the group to try again": {"topic": "%RETRY%hidden-group"},
}


@pytest.mark.parametrize("name", ROCKETMQ_SENDS)
def test_rocketmq_send(world, name):
    peer = RocketmqPeer(world.site, 902, b"\x7f\0\0\1\0\0\x2a\x9f")
    peer.give(signed(send_frame(b"forged", **ROCKETMQ_SENDS[name]), BOB))
    world.turn()
    (answer,) = peer.take()
    assert answer.code == 16
    assert heard(world) == []


def test_denials_are_logged_with_user_and_name(world, caplog):
    world.bob_of_mqtt().send(mqtt.subscribe(1, (b"secret/#", 1)))
    world.bob_of_amqp().call(Basic.Get(queue="hidden"))
    ask(world, 11, topic="HIDDEN", **PULL)
    said = [record.getMessage() for record in caplog.records if "denied" in record.getMessage()]
    assert len(said) == 3
    assert all("user=bob" in line for line in said)
    assert [line.partition("name=")[2] for line in said] == [
        "secret/# by=auth.rules[0]",
        "queue 'hidden' by=auth.rules[1]",
        "HIDDEN/0 by=auth.rules[1]",
    ]


def test_logins_and_what_is_refused_are_told_at_each_door_with_who_and_why(world):
    told = []
    world.authenticator.events.listen(told.append)
    World.connect(world, b"guess", user=b"bob", password=b"wrong")
    world.log_in("bob", "wrong")
    peer = RocketmqPeer(world.site, 904, b"\x7f\0\0\1\0\0\x2a\x9f")
    peer.give(signed(request_frame(11, opaque=7, topic="HIDDEN", **PULL), AccessKeys("bob", "wrong")))
    refused = [(str(one.kind), one.actor.door, one.fields["name"], bool(one.fields["reason"])) for one in told]
    assert refused == [("user.authentication.failure", door, "bob", True) for door in ("mqtt", "amqp", "rocketmq")]
    told.clear()
    world.bob_of_mqtt().send(mqtt.subscribe(1, (b"secret/#", 1)), mqtt.publish(b"secret/y", b""))
    world.bob_of_amqp().call(Basic.Get(queue="hidden"))
    ask(world, 11, topic="HIDDEN", **PULL)
    logins = [one for one in told if one.kind == "user.authentication.success"]
    assert [(one.actor.door, one.actor.user) for one in logins] == [
        (door, "bob") for door in ("mqtt", "amqp", "rocketmq")
    ]
    denied = [one for one in told if one.kind == "access.denied"]
    assert [(one.actor.door, one.actor.user, *map(one.fields.get, ("action", "name", "by"))) for one in denied] == [
        ("mqtt", "bob", "subscription", "secret/#", "auth.rules[0]"),
        ("mqtt", "bob", "publish", "secret/y", "auth.rules[0]"),
        ("amqp", "bob", "operation", "queue 'hidden'", "auth.rules[1]"),
        ("rocketmq", "bob", "read", "HIDDEN/0", "auth.rules[1]"),
    ]


def test_answer_of_a_refused_pull_says_what(world):
    peer = RocketmqPeer(world.site, 903, b"\x7f\0\0\1\0\0\x2a\x9f")
    peer.give(signed(request_frame(11, opaque=7, topic="HIDDEN", **PULL), BOB))
    (answer,) = peer.take()
    assert (answer.code, answer.remark) == (16, "no permission to read HIDDEN")


def test_channel_goes_on_after_a_refusal(world):
    peer = world.bob_of_amqp()
    assert peer.call(Basic.Get(queue="hidden")).reply_code == 403
    peer.send(Channel.CloseOk(), Channel.Open())
    peer.take()
    assert isinstance(peer.call(Basic.Get(queue="mine")), Basic.GetEmpty)

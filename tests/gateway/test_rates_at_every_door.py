"""Messages and bytes a second, in and out, of a client, a user, an address and a listener, at each door."""

from __future__ import annotations

import itertools

import pytest
from pamqp.commands import Basic

from gateway.door import find_listening
from gateway.net.paces import AllPaces
from gateway.settings.limits import AddressLimitsSettings
from gateway.settings.models import AmqpSettings, MqttSettings, RocketmqSettings, UserSettings
from lmq.remoting.signature import AccessKeys
from tests.support import mqtt
from tests.support.amqp_door import AmqpWorld
from tests.support.logins import quick_hash
from tests.support.mqtt_door import World
from tests.support.rocketmq import request_frame, send_frame, signed
from tests.support.rocketmq_door import DoorSite, bodies_of

BODY = b"ten bytes."
RATES = {"messages_rate": 3, "bytes_rate": 30, "messages_out_rate": 3, "bytes_out_rate": 30}  # three messages each
SCOPES = ("client", "user", "address", "listener")
SETTINGS = {"mqtt": MqttSettings, "amqp": AmqpSettings, "rocketmq": RocketmqSettings}
ALL = 8  # messages that wait for the client that is sent some
OWN, OTHER = "192.0.2.1", "192.0.2.2"


class Case:
    """One limit of one kind, of what one of the four may do; `first` and `second` are of it, `other` is not."""

    def __init__(self, door, scope, rate):
        self.scope = scope
        limits = {rate: RATES[rate]}
        self.of_door = limits if scope == "client" else {}
        self.of_user = limits if scope == "user" else {}
        self.of_address = AddressLimitsSettings(**limits if scope == "address" else {})
        entry = {"address": "127.0.0.1:0", **({f"total_{rate}": RATES[rate]} if scope == "listener" else {})}
        listens = SETTINGS[door](**{"broker" if door == "rocketmq" else "listen": [entry]})
        (self.listen,) = find_listening(door, listens.broker if door == "rocketmq" else listens.listen)

    def users(self):
        """Return the users of the settings: ann, and bob without limits."""
        said = {"password_hash": quick_hash("secret"), "secret": "a long secret"}
        return {"ann": UserSettings(**said, limits=self.of_user), "bob": UserSettings(**said)}

    def share(self, read_ms):
        """Return what the connections of the case share, and what another one has."""
        of_door = AllPaces(self.of_address, read_ms).of("any", 0)
        own = of_door.at(self.listen.rates)
        return own.find(OWN), own.find(OWN), of_door.find(OTHER)


class Mqtt:
    def __init__(self, tmp_path, case, make_engine):
        self.world = World(tmp_path, auth={"users": case.users()}, make_engine=make_engine, **case.of_door)
        shared = case.share(lambda: self.world.now_ms)
        self.peers = [self._open(*said) for said in zip(("ann", "ann", "bob"), shared, strict=True)]
        self.close = self.world.close

    def _open(self, user, shared):
        peer = self.world.dial()
        peer.transport.shared = shared
        login = {"user": user.encode(), "password": b"secret"}
        peer.send(mqtt.connect(b"c%d" % self.world.conn_id, **login)).take()
        return peer

    def publish(self, peer, count):
        for _ in range(count):
            peer.send(mqtt.publish(b"u", BODY))

    def is_slowed(self, peer):
        return peer.transport.is_held

    def read(self):
        """Return how many messages each gets at once, of as many as there are."""
        for peer in self.peers:
            peer.send(mqtt.subscribe(1, (b"t", 0))).take()
        self.world.client(b"p").send(*[mqtt.publish(b"t", BODY)] * ALL)
        return [len(peer.bodies()) for peer in self.peers]


class Amqp:
    def __init__(self, tmp_path, case, make_engine):
        self.world = AmqpWorld(tmp_path, auth={"users": case.users()}, make_engine=make_engine, **case.of_door)
        shared = case.share(lambda: self.world.now_ms)
        self.peers = [
            self.world.client(user=user, password="secret", shared=one)
            for user, one in zip(("ann", "ann", "bob"), shared, strict=True)
        ]
        self.close = self.world.close

    def publish(self, peer, count):
        peer.declare("u")
        for _ in range(count):
            peer.publish(BODY, key="u")

    def is_slowed(self, peer):
        return peer.transport.is_held

    def read(self):
        for number, peer in enumerate(self.peers):
            self.world.client_of_mqtt(b"p%d" % number)
            peer.declare(f"q{number}")
            for _ in range(ALL):
                self.world.client().publish(BODY, key=f"q{number}")
        for number, peer in enumerate(self.peers):
            peer.send(Basic.Consume(queue=f"q{number}", no_ack=True))
        return [len(peer.bodies()) for peer in self.peers]


class Rocketmq:
    KEYS = (AccessKeys("ann", "a long secret"), AccessKeys("ann", "a long secret"), AccessKeys("bob", "a long secret"))

    def __init__(self, tmp_path, case, make_engine):
        self.site = DoorSite(tmp_path, RocketmqSettings(**case.of_door), users=case.users(), make_engine=make_engine)
        shared = case.share(lambda: self.site.now_ms)
        self.peers = []
        for one in shared:
            self.peers.append(self.site.connect())
            self.peers[-1].transport.shared = one
        self.opaques = itertools.count(1)
        self.close = self.site.close

    def _ask(self, peer, frame):
        """Return the answer, None where there is none yet."""
        peer.give(signed(frame, self.KEYS[self.peers.index(peer)]))
        self.site.turn()
        return next(iter(peer.take()), None)

    def publish(self, peer, count):
        for _ in range(count):
            assert self._ask(peer, send_frame(BODY, opaque=next(self.opaques), e="0")).code == 0

    def is_slowed(self, peer):
        return self._ask(peer, send_frame(BODY, opaque=next(self.opaques), e="0")).code == 2

    def read(self):
        for _ in range(ALL):  # each by a client of its own, which is new
            self.site.connect().send(BODY, e="0")
        ext = {
            "consumerGroup": "g", "topic": "T", "queueId": 0, "queueOffset": 0, "maxMsgNums": ALL, "sysFlag": 4,
            "commitOffset": 0, "suspendTimeoutMillis": 0, "subscription": "*", "subVersion": 0,
        }  # fmt: skip
        answers = [self._ask(peer, request_frame(11, opaque=next(self.opaques), **ext)) for peer in self.peers]
        return [0 if answer is None else len(bodies_of(answer)) for answer in answers]


DOORS = {"mqtt": Mqtt, "amqp": Amqp, "rocketmq": Rocketmq}


@pytest.fixture
def make(tmp_path, request, engine_maker):
    def make(door, scope, rate):
        site = DOORS[door](tmp_path / "data", Case(door, scope, rate), engine_maker)
        request.addfinalizer(site.close)
        return site

    return make


@pytest.mark.parametrize("rate", ["messages_rate", "bytes_rate"])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("door", DOORS)
def test_what_is_published_has_a_rate(make, door, scope, rate):
    site = make(door, scope, rate)
    first, second, other = site.peers
    site.publish(first, 2)
    assert not site.is_slowed(first)  # RocketMQ's answer is that to a third one
    if door != "rocketmq":
        site.publish(first, 1)
    if door != "rocketmq" or scope == "client":
        site.publish(second, 1)  # of the same user, address and listener; another client
    site.publish(other, 1)
    assert [site.is_slowed(peer) for peer in (first, second, other)] == [True, scope != "client", False]


@pytest.mark.here(reason="a pull that does not wait is told to come again for what is on its way")
@pytest.mark.parametrize("rate", ["messages_out_rate", "bytes_out_rate"])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("door", DOORS)
def test_what_is_sent_has_a_rate(make, door, scope, rate):
    first, second, other = make(door, scope, rate).read()
    most = 3
    if scope == "client":
        assert (first, second) == (most, most)
    else:
        assert first + second == most
    assert other == (ALL if scope in {"user", "listener"} else most)  # another client or address has its own

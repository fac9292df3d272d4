"""What one user may have, on all connections together."""

from __future__ import annotations

import pytest
from pamqp.commands import Channel, Connection

from gateway.mqtt.reason_codes import ReasonCode
from gateway.settings.models import UserSettings
from lmq.remoting.signature import AccessKeys
from tests.support.amqp_door import AmqpWorld
from tests.support.mqtt import connack, connect, connect_5
from tests.support.mqtt_5 import connack_of
from tests.support.mqtt_door import World
from tests.support.rocketmq import request_frame, signed
from tests.support.rocketmq_door import DoorSite

ANN = AccessKeys("ann", "a long secret")
USERS = {"ann": {"secret": ANN.secret_key, "limits": {"connections_max": 1}}}


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    yield world
    world.close()


def test_amqp_connection_that_is_too_much_is_refused_as_rabbitmq_does(world):
    world.authenticator.quotas.set("guest", "max-connections", 2)
    first, second = world.client(), world.client()
    refused = world.log_in()
    (close,) = [one for one in refused.opening if isinstance(one, Connection.Close)]
    assert close.reply_code == 530
    assert "connection refused for user 'guest': user connection limit (2) is reached" in close.reply_text
    second.vanish()
    assert world.client().declare("q").queue == "q"
    assert first.declare("q").queue == "q"


def test_amqp_channels_of_all_connections_count_together(world):
    world.authenticator.quotas.set("guest", "max-channels", 3)
    first, second = world.client(channels=2), world.client(channels=1)
    answer = second.call(Channel.Open(), 2)
    assert isinstance(answer, Connection.Close)
    assert answer.reply_code == 530
    assert "number of channels opened for user 'guest' has reached the maximum allowed user limit of (3)" in (
        answer.reply_text
    )
    second.vanish()
    assert isinstance(first.call(Channel.Open(), 3), Channel.OpenOk)


def _dial(world, packet):
    """Return a client of MQTT that has shown a certificate of ann."""
    peer = world.dial()
    peer.transport.peer_name = "ann"
    return peer.send(packet)


@pytest.mark.parametrize("is_5", [False, True])
def test_mqtt_client_that_is_too_much_is_told_and_one_that_comes_again_is_not(tmp_path, engine_maker, is_5):
    world = World(tmp_path, auth={"users": USERS}, make_engine=engine_maker)
    first = _dial(world, connect(b"a"))
    assert first.take() == [connack()]
    (again,) = _dial(world, connect(b"a")).take()  # the same client: the first connection gives way
    assert again == connack()
    assert first.is_closed
    refused = _dial(world, connect_5(b"b") if is_5 else connect(b"b"))
    (data,) = refused.take()
    assert connack_of(data)[1] == ReasonCode.QUOTA_EXCEEDED if is_5 else data == connack(3)
    assert refused.is_closed
    for peer in world.peers:
        if not peer.is_closed:
            peer.vanish()
    assert _dial(world, connect(b"b")).take() == [connack()]
    world.close()


def test_rocketmq_client_that_is_too_much_is_told_that_the_broker_is_busy(tmp_path, engine_maker):
    users = {"ann": UserSettings(**USERS["ann"])}
    site = DoorSite(tmp_path / "d", anonymous=False, users=users, make_engine=engine_maker)
    first, second = site.connect(), site.connect()
    for peer in (first, second):
        for opaque in (1, 2):
            peer.give(signed(request_frame(105, opaque=opaque, topic="TBW102"), ANN))
            site.turn()
    assert [(answer.opaque, answer.code) for answer in first.take()] == [(1, 0), (2, 0)]
    answers = second.take()
    assert [answer.code for answer in answers] == [2, 2]
    assert "as many connections as it may have" in answers[0].remark
    first.handler.on_closed(site.now_ms)
    second.give(signed(request_frame(105, opaque=3, topic="TBW102"), ANN))
    site.turn()
    assert [answer.code for answer in second.take()] == [0]
    site.close()

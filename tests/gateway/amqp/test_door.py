from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.commands import Connection

from gateway.door import Listen
from gateway.settings.models import AmqpSettings, GatewaySettings
from tests.support.amqp_door import AmqpWorld


def test_door_has_one_address(tmp_path):
    world = AmqpWorld(tmp_path, listen="127.0.0.1:1")
    assert world.amqp.listens() == [Listen("amqp", "127.0.0.1:1")]
    world.close()


@pytest.mark.asyncio
async def test_nothing_is_to_be_known_of_what_is_bound(world):
    await world.amqp.on_listening({"amqp": ("127.0.0.1", 1)})
    assert world.client().is_closed is False


def test_other_settings_are_offered_to_new_connections(world):
    before = world.client()
    world.amqp.reload(GatewaySettings(amqp=AmqpSettings(channels_max=7, connections_max=3)))
    (_, tune, _) = world.log_in().opening
    assert isinstance(tune, Connection.Tune)
    assert tune.channel_max == 7
    assert world.amqp.limits.connections_max == 3
    assert isinstance(before.call(commands.Channel.Open(), 9), commands.Channel.OpenOk)


def test_queue_that_nobody_uses_goes_at_an_interval(world):
    peer = world.client()
    peer.declare("q", arguments={"x-expires": 1_000})
    interval, *_ = world.amqp.intervals()
    interval.work(world.now_ms)
    interval.work(world.now_ms + 999)
    assert world.amqp.vhost.find("q") is not None
    interval.work(world.now_ms + 1_001)
    assert world.amqp.vhost.find("q") is None


@pytest.mark.here(reason="an expired message counts until it is here")
def test_expired_messages_go_when_the_door_is_tended(world):
    peer = world.client()
    peer.declare("q", arguments={"x-message-ttl": 1_000})
    peer.publish(b"old")
    world.now_ms += 1_001
    world.amqp.tend(world.now_ms)
    assert peer.declare("q", passive=True).message_count == 0


def test_stop_says_farewell(world):
    peer = world.client()
    world.amqp.stop(world.now_ms)
    (closed,) = peer.take()
    assert closed.reply_code == 320


def test_held_publisher_whose_peer_is_gone_is_read_again(world):
    peer = world.client()
    peer.declare("q")
    world.set_free(0)
    peer.publish(b"x")
    assert peer.transport.is_held
    peer.transport.fileno = lambda: -1  # the socket of a connection that is closed
    world.amqp.read_departed()
    peer.vanish()
    assert world.amqp_counts.publishers_held == 0

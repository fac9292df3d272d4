"""How fast may be published: by one connection, and by all of a user."""

from __future__ import annotations

import pytest

from gateway.auth.user_quotas import UserQuotas
from gateway.net.paces import AllPaces
from gateway.pacing import UserRates, make_pacing
from gateway.settings.limits import AddressLimitsSettings
from gateway.settings.models import AuthSettings, UserSettings
from gateway.settings.user_limits import UserLimitsSettings
from tests.support.amqp_door import AmqpWorld
from tests.support.mqtt import connect, publish
from tests.support.mqtt_door import World


def _pass_time(world, peer, ms):
    world.now_ms += ms
    if peer.handler.next_deadline_ms() is not None:
        peer.handler.on_timer(world.now_ms)
    world.turn()


def test_connections_of_a_user_share_the_user_s_rates_and_have_their_own():
    of_user = UserRates(10, -1, 0)
    first, second = make_pacing(8, 0, of_user, 0), make_pacing(0, 100, of_user, 0)
    assert (first.allow(0), second.allow(0)) == (8, 10)
    assert not first.note(7, 1_000, 0)
    assert (first.allow(0), second.allow(0)) == (1, 3)
    assert second.note(3, 100, 0)
    assert second.until_ms == 101
    assert first.note(1, 0, 0)
    assert second.allow(1_000) == 9  # one more than there were was taken
    third = make_pacing(0, 0, None, 0, UserRates(5, -1, 0), UserRates(-1, 50, 0))
    assert third.allow(0) == 5
    assert third.note(1, 51, 0)
    assert make_pacing(0, 0, None, 0) is None
    assert make_pacing(0, 0, UserRates(-1, -1, 0), 0) is None


def test_rates_are_the_same_for_who_comes_again():
    settings = AuthSettings(user_limits=UserLimitsSettings(messages_rate=5))
    quotas = UserQuotas(settings, int)
    quotas.enter("ann", "seat")
    rates = quotas.find_rates("ann", 0)
    assert quotas.find_rates("ann", 9) is rates
    quotas.leave("ann", "seat")
    assert quotas.find_rates("ann", 9) is rates
    quotas.use(AuthSettings(user_limits=UserLimitsSettings(messages_rate=6)))
    assert quotas.find_rates("ann", 9) is not rates
    assert quotas.find_rates("", 0) is None
    quotas.use(AuthSettings())
    assert quotas.find_rates("ann", 0) is None


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, messages_rate=10, make_engine=engine_maker)
    yield world
    world.close()


def test_amqp_publisher_that_is_too_fast_is_read_on_at_its_pace_and_nothing_is_lost(world):
    fast, other = world.client().confirms(), world.client()
    fast.declare("q")
    bodies = [b"%d" % i for i in range(35)]
    fast.publish(*bodies)
    reader = world.client().consume("q", no_ack=True)
    assert reader.bodies() == bodies[:10]
    assert fast.transport.is_held
    assert not other.transport.is_held
    got = []
    for second in range(1, 4):
        _pass_time(world, fast, 1_000)
        got += reader.bodies()
        assert len(got) <= 10 * second
    _pass_time(world, fast, 1_000)
    got += reader.bodies()
    assert got == bodies[10:]
    _pass_time(world, fast, 1_000)
    assert not fast.transport.is_held
    assert fast.take()[-1].delivery_tag == 35
    assert fast.declare("r").queue == "r"


def test_amqp_publisher_that_pauses_while_the_disk_is_low_is_held_until_both_are_over(world):
    fast = world.client()
    fast.declare("q")
    fast.publish(*[b"x"] * 12)
    world.set_free(0)
    _pass_time(world, fast, 5_000)
    assert fast.transport.is_held
    world.set_free(1 << 40)
    world.turn()
    assert not fast.transport.is_held


def test_all_of_a_user_s_connections_share_the_rate(tmp_path, engine_maker):
    limits = UserLimitsSettings(messages_rate=3)
    users = {"ann": UserSettings(secret="a long secret", limits=limits)}
    world = World(tmp_path / "m", auth={"users": users}, make_engine=engine_maker)
    peers = [world.dial() for _ in range(2)]
    for number, peer in enumerate(peers):
        peer.transport.peer_name = "ann"
        peer.send(connect(b"%d" % number), publish(b"t", b"1"), publish(b"t", b"2"))
    assert [peer.transport.is_held for peer in peers] == [False, True]
    world.close()


def test_all_of_an_address_share_its_rate_at_all_doors(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    of_address = AllPaces(AddressLimitsSettings(messages_rate=3), lambda: world.now_ms).of("any", 0)
    world.client().declare("q")
    service = world.client(shared=of_address.find("192.0.2.1"))
    service.publish(*[b"x"] * 3, key="q")
    assert service.transport.is_held
    other = world.client(shared=of_address.find("192.0.2.2"))
    other.publish(*[b"x"] * 2, key="q")
    assert not other.transport.is_held
    device = world.dial()
    device.transport.shared = of_address.find("192.0.2.1")
    device.send(connect(b"d"), publish(b"t", b"1"), publish(b"t", b"2"))
    assert device.transport.is_held
    world.close()

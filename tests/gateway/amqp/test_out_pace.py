"""How fast a client is sent messages: the rest waits, for it or for others."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic

from gateway.settings.models import UserSettings
from gateway.settings.user_limits import UserLimitsSettings
from tests.support.amqp_door import AmqpWorld, Message
from tests.support.logins import quick_hash

HASH = quick_hash("secret")


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, messages_out_rate=10, make_engine=engine_maker)
    yield world
    world.close()


def _fill(world, count, body=b"x"):
    world.client().declare("q", durable=True)
    world.client().publish(*[body] * count, key="q")


def _pass_time(world, ms, *peers):
    world.now_ms += ms
    for peer in peers:
        deadline_ms = peer.handler.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= world.now_ms:
            peer.handler.on_timer(world.now_ms)
    world.turn()


@pytest.mark.here(reason="counts what one turn hands out")
@pytest.mark.parametrize("no_ack", [True, False])
def test_consumer_gets_as_much_a_second_and_then_the_rest(world, no_ack):
    _fill(world, 25)
    peer = world.client().consume("q", no_ack=no_ack)
    assert len(peer.bodies()) == 10
    _pass_time(world, 50, peer)
    assert peer.bodies() == []
    _pass_time(world, 450, peer)
    assert len(peer.bodies()) == 5
    for _ in range(2):
        _pass_time(world, 1_000, peer)
    assert len(peer.bodies()) == 10


@pytest.mark.here(reason="counts what one turn hands out")
def test_what_a_paced_consumer_leaves_goes_to_others(world):
    _fill(world, 19)
    slow, other = world.client().consume("q", no_ack=True), world.client().consume("q", no_ack=True)
    assert len(slow.bodies()) + len(other.bodies()) == 19
    slow.call(Basic.Qos(prefetch_count=1))  # it is still answered
    _fill(world, 1)
    assert len(slow.bodies()) + len(other.bodies()) == 1


@pytest.mark.here(reason="counts what one turn hands out")
def test_bytes_that_are_too_many_are_waited_for(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, bytes_out_rate=1_000, make_engine=engine_maker)
    _fill(world, 2, b"x" * 1_500)
    peer = world.client()
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("q")
    first = peer.messages()
    assert len(first) == 1
    peer.send(Basic.Ack(first[0].tag))
    assert peer.messages() == []
    _pass_time(world, 400, peer)
    assert peer.messages() == []
    _pass_time(world, 110, peer)
    assert len(peer.messages()) == 1
    world.close()


@pytest.mark.here(reason="counts what one turn hands out")
def test_gets_are_answered_at_the_same_pace_in_their_order(world):
    _fill(world, 12)
    peer = world.client()
    peer.send(*[Basic.Get(queue="q", no_ack=True)] * 13)
    assert len(peer.bodies()) == 10
    assert peer.transport.is_held
    _pass_time(world, 101, peer)
    assert len(peer.bodies()) == 1
    _pass_time(world, 1_000, peer)
    (last, empty) = peer.take()
    assert isinstance(last, Message)
    assert isinstance(empty, Basic.GetEmpty)
    assert not peer.transport.is_held


@pytest.mark.here(reason="counts what one turn hands out")
def test_all_of_a_user_share_its_rate_and_others_have_theirs(tmp_path, engine_maker):
    users = {
        "ann": UserSettings(password_hash=HASH, limits=UserLimitsSettings(messages_out_rate=6)),
        "bob": UserSettings(password_hash=HASH),
    }
    world = AmqpWorld(tmp_path, auth={"users": users}, make_engine=engine_maker)
    for queue, count in (("a", 5), ("b", 5), ("c", 9)):
        world.client().declare(queue)
        world.client().publish(*[b"x"] * count, key=queue)
    first, second = (world.client(user="ann", password="secret").consume(queue, no_ack=True) for queue in "ab")
    other = world.client(user="bob", password="secret").consume("c", no_ack=True)
    assert (len(first.bodies()), len(second.bodies()), len(other.bodies())) == (5, 1, 9)
    _pass_time(world, 1_000, first, second)
    assert len(second.bodies()) == 4
    world.close()


@pytest.mark.here(reason="counts what one turn hands out")
def test_the_first_get_of_a_new_connection_waits_where_others_of_its_user_took_all(tmp_path, engine_maker):
    users = {"ann": UserSettings(password_hash=HASH, limits=UserLimitsSettings(messages_out_rate=2))}
    world = AmqpWorld(tmp_path, auth={"users": users}, make_engine=engine_maker)
    _fill(world, 4)
    taker = world.client(user="ann", password="secret").consume("q", no_ack=True)
    assert len(taker.bodies()) == 2
    taker.call(Basic.Cancel("c"))
    peer = world.client(user="ann", password="secret")
    peer.send(*[Basic.Get(queue="q", no_ack=True)] * 2)
    assert peer.take() == []
    _pass_time(world, 1_000, peer)
    assert peer.bodies() == [b"x"] * 2
    world.close()


@pytest.mark.here(reason="counts what one turn hands out")
@pytest.mark.parametrize("arguments", [None, {"x-stream-offset": "first"}])
def test_as_many_bytes_are_sent_at_once_as_a_second_may_have(tmp_path, engine_maker, arguments):
    world = AmqpWorld(tmp_path, bytes_out_rate=1_000, make_engine=engine_maker)
    _fill(world, 20, b"x" * 100)
    peer = world.client()
    peer.call(Basic.Qos(prefetch_count=100))
    peer.send(Basic.Consume(queue="q", arguments=arguments))
    assert len(peer.bodies()) == 10
    _pass_time(world, 500, peer)
    assert len(peer.bodies()) == 5
    world.close()


def test_a_user_that_logs_in_too_often_is_refused_for_a_moment(tmp_path, engine_maker):
    users = {"ann": UserSettings(password_hash=HASH, limits=UserLimitsSettings(connects_rate=2))}
    world = AmqpWorld(tmp_path, auth={"users": users}, make_engine=engine_maker)
    for _ in range(2):
        world.client(user="ann", password="secret")
    refused = world.log_in("ann", "secret")
    assert refused.opening[-1].reply_code == 530
    assert "user connection rate limit (2) is reached" in refused.opening[-1].reply_text
    world.now_ms += 1_000
    world.client(user="ann", password="secret")
    world.close()


@pytest.mark.here(reason="counts what one turn hands out")
def test_a_get_right_after_a_pause_does_not_keep_consumers_waiting(world):
    _fill(world, 12)
    world.client().declare("other")
    world.client().publish(b"got", key="other")
    peer = world.client().consume("q", no_ack=True)
    assert len(peer.bodies()) == 10
    world.now_ms += 500  # the pause is over, and the timer has not come by
    peer.send(Basic.Get(queue="other", no_ack=True))
    assert peer.bodies() == [b"got"]
    _pass_time(world, 250, peer)
    _pass_time(world, 1_000, peer)
    assert len(peer.bodies()) == 2


@pytest.mark.here(reason="counts what one turn hands out")
def test_a_get_that_waits_for_its_pace_takes_nothing_for_a_channel_that_was_closed_meanwhile(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, bytes_out_rate=1, consumer_timeout_ms=60_000, make_engine=engine_maker)
    _fill(world, 2, b"x" * 1_000)
    peer = world.client()
    peer.send(*[Basic.Get(queue="q")] * 2)
    assert len(peer.bodies()) == 1
    for _ in range(4):
        world.now_ms += 60_000
        world.amqp.check_acknowledgements(world.now_ms)
        world.turn()
    assert [one.reply_code for one in peer.take()] == [406]
    _pass_time(world, 1_000_000, peer)
    assert peer.take() == []
    other = world.client()
    assert other.declare("q", passive=True, durable=True).message_count == 2
    world.close()

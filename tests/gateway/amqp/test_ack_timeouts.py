"""A consumer that leaves a delivery unacknowledged for too long loses its channel, and others get its messages."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel

from gateway.amqp.ack_timeouts import STEP_CHANNELS
from tests.support.amqp_door import AmqpWorld

LIMIT_MS = 1_800_000


def wait(world, time_ms, step_ms=60_000):
    """Let time go by, with a look at all channels in each step."""
    while time_ms > 0:
        world.now_ms += min(step_ms, time_ms)
        time_ms -= step_ms
        world.amqp.check_acknowledgements(world.now_ms)
        world.turn()


def consume(world, queue="q", **arguments):
    peer = world.client()
    peer.declare(queue, durable=True)
    peer.consume(queue, arguments=arguments)
    return peer


def reason(channel, timeout_ms):
    return (
        f"PRECONDITION_FAILED - delivery acknowledgement on channel {channel} timed out. "
        f"Timeout value used: {timeout_ms} ms. "
        "This timeout value can be configured, see consumers doc guide to learn more"
    )


def test_a_channel_ends_half_an_hour_after_a_delivery_and_others_get_it(world):
    peer = consume(world)
    wait(world, 60_000)
    peer.publish(b"1", key="q")
    assert peer.bodies() == [b"1"]
    wait(world, LIMIT_MS - 60_000)
    assert peer.take() == []
    wait(world, 180_000)
    (closed,) = peer.take()
    assert isinstance(closed, Channel.Close)
    assert (closed.reply_code, closed.reply_text, closed.class_id) == (406, reason(1, LIMIT_MS), 0)
    peer.send(Channel.CloseOk(), Channel.Open()).take()
    (again,) = peer.consume().messages()
    assert (again.body, again.method.redelivered) == (b"1", True)


def test_a_channel_that_acknowledges_in_time_stays(world):
    peer = consume(world)
    for number in range(100):
        peer.publish(b"%d" % number, key="q")
        (message,) = peer.messages()
        wait(world, LIMIT_MS // 2)
        peer.send(Basic.Ack(message.tag))
    wait(world, 2 * LIMIT_MS)
    assert peer.take() == []


def test_one_old_delivery_among_many_is_enough(world):
    peer = consume(world)
    peer.publish(b"left", key="q")
    peer.messages()
    for _ in range(4):
        peer.publish(*[b"x"] * 400, key="q")
        for message in peer.messages():
            peer.send(Basic.Ack(message.tag))
        wait(world, LIMIT_MS // 4)
    wait(world, 180_000)
    assert peer.take()[-1].reply_text == reason(1, LIMIT_MS)


def test_deliveries_that_go_on_are_each_in_time_for_themselves(world):
    peer = consume(world)
    waiting = []
    for number in range(200):
        peer.publish(b"%d" % number, key="q")
        waiting += peer.messages()
        if number >= 20:
            peer.send(Basic.Ack(waiting.pop(0).tag))  # after twenty-one minutes
        wait(world, 60_000)
    assert peer.take() == []
    assert len(world.amqp.connections.copy().pop().output.connection.channels[1].ack_marks) < 40


def test_a_queue_says_its_own_time(world):
    peer = world.client(channels=3)
    peer.declare("short", durable=True, arguments={"x-consumer-timeout": 10_000})
    peer.declare("never", durable=True, arguments={"x-consumer-timeout": 0})
    for channel, queue in ((2, "short"), (3, "never")):
        peer.publish(b"1", key=queue)
        peer.consume(queue, channel=channel)
    peer.take()
    wait(world, 12_000, 1_000)
    (closed,) = peer.take()
    assert closed.reply_text == reason(2, 10_000)
    wait(world, 3 * LIMIT_MS)
    assert peer.take() == []


def test_a_consumer_says_its_own_time(world):
    peer = consume(world, **{"x-consumer-timeout": 5_000})
    peer.publish(b"1", key="q")
    wait(world, 7_000, 500)
    assert peer.take()[-1].reply_text == reason(1, 5_000)
    answer = world.client().call(Basic.Consume(queue="q", arguments={"x-consumer-timeout": -1}))
    assert answer.reply_text.endswith(
        "invalid arg 'x-consumer-timeout' for queue 'q' in vhost '/': {value_negative,-1}"
    )


def test_messages_that_were_got_one_by_one_count_too(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.publish(b"1", key="q").call(Basic.Get(queue="q"))
    wait(world, LIMIT_MS + 180_000)
    assert peer.take()[-1].reply_text == reason(1, LIMIT_MS)


@pytest.mark.parametrize(("setting", "is_closed"), [(5_000, True), (0, False)])
def test_the_settings_say_the_time_of_all_others(tmp_path, engine_maker, setting, is_closed):
    world = AmqpWorld(tmp_path, consumer_timeout_ms=setting, make_engine=engine_maker)
    peer = consume(world)
    peer.publish(b"1", key="q").take()
    wait(world, 2 * LIMIT_MS)
    assert bool(peer.take()) == is_closed
    world.close()


def test_among_many_connections_one_is_found_in_a_turn_that_looks_at_the_clock(world):
    others = [world.client() for _ in range(STEP_CHANNELS)]
    peer = consume(world, **{"x-consumer-timeout": 5_000})
    peer.publish(b"1", key="q")
    wait(world, 5_000, 1_000)
    assert len(peer.messages()) == 1
    world.now_ms += 1_000
    world.amqp.check_acknowledgements(world.now_ms)
    assert peer.take() == []
    world.turn()
    assert peer.take()[-1].reply_text == reason(1, 5_000)
    assert [other.take() for other in others] == [[]] * STEP_CHANNELS

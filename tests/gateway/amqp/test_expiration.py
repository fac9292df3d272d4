from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Queue

from gateway.amqp.errors import AmqpError
from gateway.amqp.expiration import parse_expiration


@pytest.mark.parametrize(("text", "ttl_ms"), [(b"0", 0), (b"60000", 60_000), (b"+5", 5), (b"007", 7), (b"-0", 0)])
def test_whole_numbers_are_milliseconds(text, ttl_ms):
    assert parse_expiration(text) == ttl_ms


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "no_integer"),
        (b"soon", "no_integer"),
        (b" 5", "no_integer"),
        (b"\xff", "no_integer"),
        (b"10s", '{leftover_string,"s"}'),
        (b"1.5", '{leftover_string,".5"}'),
        (b"-1", "{value_negative,-1}"),
        (b"315360000001", "{value_too_large,315360000001}"),
    ],
)
def test_anything_else_is_refused_in_the_words_of_rabbitmq(text, why):
    with pytest.raises(AmqpError) as caught:
        parse_expiration(text)
    shown = text.decode(errors="replace")
    assert caught.value.reply_text == f"PRECONDITION_FAILED - invalid expiration '{shown}': {why}"


def test_a_wrong_expiration_costs_the_channel_and_nothing_that_came_before(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"good", key="q").publish(b"bad", key="q", expiration="10s")
    (close,) = peer.take()
    assert (close.reply_code, close.class_id, close.method_id) == (406, 60, 40)
    assert close.reply_text == "PRECONDITION_FAILED - invalid expiration '10s': {leftover_string,\"s\"}"
    peer.send(Channel.CloseOk())
    peer.call(Channel.Open())
    assert peer.declare("q", passive=True).message_count == 1


def test_an_expired_message_is_not_delivered(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"short", key="q", expiration="100").publish(b"long", key="q", expiration="1000")
    peer.publish(b"for ever", key="q")
    world.now_ms += 100
    peer.consume("q")
    assert [message.body for message in peer.messages()] == [b"long", b"for ever"]
    assert world.amqp_counts.dropped == {"expired": 1}


def test_the_last_millisecond_still_counts(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"x", key="q", expiration="100")
    world.now_ms += 99
    assert peer.call(Basic.Get(queue="q")).body == b"x"


def test_get_passes_over_expired_messages_and_counts_them_no_more(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(*[b"gone"] * 600, key="q", expiration="50").publish(b"here", b"last", key="q")
    world.now_ms += 50
    got = peer.call(Basic.Get(queue="q", no_ack=True))
    assert (got.body, got.method.message_count) == (b"here", 1)
    assert peer.call(Basic.Get(queue="q", no_ack=True)).body == b"last"
    assert isinstance(peer.call(Basic.Get(queue="q")), Basic.GetEmpty)


@pytest.mark.here(reason="an expired message counts until it is here")
def test_counts_leave_out_expired_messages_that_come_first(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q", expiration="50").publish(b"3", key="q").publish(b"4", key="q", expiration="50")
    assert peer.declare("q", passive=True).message_count == 4
    world.now_ms += 50
    assert peer.declare("q", passive=True).message_count == 2  # as in RabbitMQ, the last waits behind the third
    assert peer.call(Queue.Purge(queue="q")).message_count == 2
    peer.publish(b"5", key="q", expiration="50")
    world.now_ms += 50
    assert peer.call(Queue.Purge(queue="q")).message_count == 0
    peer.publish(b"6", key="q", expiration="50")
    world.now_ms += 50
    assert peer.call(Queue.Delete(queue="q", if_empty=True)).message_count == 0


def test_a_message_that_comes_back_expires_too(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"a", b"b", key="q", expiration="100").publish(b"c", key="q").consume("q")
    messages = peer.messages()
    world.now_ms += 100
    peer.send(Basic.Nack(messages[2].tag, multiple=True, requeue=True))
    (again,) = peer.messages()
    assert (again.body, again.method.redelivered) == (b"c", True)
    assert world.amqp_counts.dropped == {"expired": 2}


@pytest.mark.here(reason="an expired message counts until it is here")
def test_a_count_after_messages_came_back_leaves_the_live_ones_unmarked(world):
    peer = world.client(channels=2)
    peer.declare("q")
    peer.publish(b"a", key="q", expiration="100").publish(b"b", key="q")
    peer.call(Basic.Get(queue="q"))
    peer.call(Basic.Get(queue="q"))
    peer.publish(b"c", key="q")
    peer.call(Channel.Close(200, "", 0, 0))
    world.now_ms += 100
    assert peer.declare("q", channel=2, passive=True).message_count == 2
    assert [peer.call(Basic.Get(queue="q"), 2).method.redelivered for _ in range(2)] == [True, False]


def test_none_at_all_is_for_a_consumer_that_is_ready(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"nobody", key="q", expiration="0")
    assert isinstance(peer.call(Basic.Get(queue="q")), Basic.GetEmpty)
    peer.send(Basic.Qos(prefetch_count=1))
    peer.publish(b"nobody", key="q", expiration="0").consume("q")
    assert peer.messages() == []
    peer.publish(b"ready", b"busy", key="q", expiration="0")
    (message,) = peer.messages()
    assert message.body == b"ready"
    peer.send(Basic.Ack(message.tag))
    assert peer.messages() == []
    assert world.amqp_counts.dropped == {"expired": 3}


@pytest.mark.here(reason="an expired message counts until it is here")
def test_a_gateway_that_was_restarted_knows_when_messages_expire(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.publish(b"short", key="q", expiration="100").publish(b"long", key="q", expiration="10000")
    world.now_ms += 100
    world.close()
    world.open()
    peer = world.client()
    assert peer.declare("q", passive=True).message_count == 1
    assert peer.call(Basic.Get(queue="q")).body == b"long"


def test_what_expires_in_a_queue_that_nobody_reads_is_let_go_of(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.declare("other", durable=True)
    peer.publish(b"1", b"2", key="q", expiration="100").publish(b"3", key="q").publish(b"4", key="other")
    world.amqp.vhosts.drop_expired(world.now_ms)
    before = dict(world.amqp.vhosts.floors())
    world.now_ms += 100
    world.close()
    world.open()
    for _ in range(2):  # a queue that is not open yet is opened, and then looked at
        world.amqp.vhosts.drop_expired(world.now_ms)
        world.turn()
    after = dict(world.amqp.vhosts.floors())
    assert sorted(after[ref] - before[ref] for ref in before) == [0, 2]


@pytest.mark.here(reason="an expired message counts until it is here")
def test_the_record_stays_in_the_log(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"x", key="q", expiration="5")
    world.now_ms += 5
    assert peer.declare("q", passive=True).message_count == 0
    assert world.read_parent()[-1][b"LMQ_TTL_MS"] == b"5"


def test_a_queue_can_limit_the_life_of_all_its_messages(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-message-ttl": 100})
    peer.publish(b"1", key="q").publish(b"2", key="q", expiration="50").publish(b"3", key="q", expiration="5000")
    world.now_ms += 50
    assert peer.declare("q", passive=True).message_count == 3
    peer.publish(b"4", key="q")
    world.now_ms += 50
    world.close()
    world.open()
    world.amqp.vhosts.drop_expired(world.now_ms)
    peer = world.client()
    assert peer.call(Basic.Get(queue="q")).body == b"4"
    world.now_ms += 50
    peer.publish(b"5", key="q").vanish()
    peer = world.client().consume("q")
    assert peer.bodies() == [b"5"]


def test_a_queue_that_nobody_uses_is_deleted(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-expires": 3_000})
    peer.declare("other", durable=True)

    def pass_seconds(count):
        for _ in range(count):
            world.now_ms += 1_000
            world.amqp.vhosts.remove_unused(world.now_ms)
        return world.amqp.vhost.find("q") is not None

    assert pass_seconds(3)
    peer.declare("q", durable=True, arguments={"x-expires": 3_000})
    assert pass_seconds(3)
    peer.call(Basic.Get(queue="q"))
    assert pass_seconds(3)
    peer.consume("q").take()
    assert pass_seconds(9)
    peer.call(Basic.Cancel("c"))
    assert pass_seconds(3)
    world.close()
    world.open()
    assert pass_seconds(3)
    assert not pass_seconds(1)
    assert world.amqp.vhost.find("other") is not None
    world.close()
    world.open()
    assert not pass_seconds(0)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("x-expires", 0, "{value_zero,0}"),
        ("x-expires", -1, "{value_negative,-1}"),
        ("x-message-ttl", -1, "{value_negative,-1}"),
        ("x-message-ttl", "100", '"expected integer, got longstr"'),
        ("x-message-ttl", True, '"expected integer, got bool"'),
    ],
)
def test_wrong_times_of_a_queue_are_refused(world, name, value, why):
    close = world.client().declare("q", arguments={name: value})
    said = f"PRECONDITION_FAILED - invalid arg '{name}' for queue 'q' in vhost '/': {why}"
    assert (close.reply_code, close.reply_text) == (406, said)


def test_a_queue_declared_with_another_time_is_another_queue(world):
    world.client().declare("q", arguments={"x-message-ttl": 1_000})
    texts = (
        ({"x-message-ttl": 2_000}, "received '2000' but current is '1000'"),
        ({}, "received none but current is the value '1000' of type 'short'"),
    )
    for arguments, text in texts:
        close = world.client().declare("q", arguments=arguments)
        what = "inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/'"
        assert close.reply_text == f"PRECONDITION_FAILED - {what}: {text}"
    assert world.client().declare("q", arguments={"x-message-ttl": 1_000}).queue == "q"

"""Consumers with `x-stream-offset`: each reads all messages of a queue, and takes nothing from it."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Queue

from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.late_engine import make_late


def declare(peer, name="q"):
    peer.declare(name, durable=True)
    return peer


def read(peer, start, tag="s", **options):
    peer.consume("q", tag, arguments={"x-stream-offset": start}, **options)
    return peer


def offsets(messages):
    return [message.properties.headers["x-stream-offset"] for message in messages]


def test_two_readers_and_a_worker_get_all_messages(world):
    peer = declare(world.client())
    worker, first, second = [world.client() for _ in range(3)]
    peer.publish(b"0", b"1", headers={"a": 1})
    worker.consume("q", no_ack=True)
    read(first, "first")
    peer.publish(b"2")
    read(second, "first", no_ack=True)
    assert worker.bodies() == [b"0", b"1", b"2"]
    messages = first.messages()
    assert [message.body for message in messages] == second.bodies() == [b"0", b"1", b"2"]
    assert offsets(messages) == [0, 1, 2]
    assert messages[0].properties.headers["a"] == 1
    assert not messages[0].method.redelivered
    assert peer.declare("q", durable=True, passive=True).consumer_count == 1


@pytest.mark.parametrize(
    ("start", "expected"),
    [("first", [0, 1, 2, 3]), ("last", [2, 3]), ("next", [3]), (1, [1, 2, 3]), (100, []), ("1h", [0, 1, 2, 3])],
)
def test_a_reader_begins_where_it_says(world, start, expected):
    peer = declare(world.client())
    peer.publish(b"0", b"1", b"2")
    reader = read(world.client(), start)
    peer.publish(b"3")
    assert reader.bodies() == [b"%d" % i for i in expected]


def test_a_reader_begins_at_a_moment(world):
    peer = declare(world.client())
    peer.publish(b"old")
    world.now_ms += 60_000
    peer.publish(b"new")
    assert read(world.client(), "30s").bodies() == [b"new"]


def test_acknowledgements_make_room_and_take_nothing(world):
    peer = declare(world.client())
    peer.publish(*[b"%d" % i for i in range(5)])
    reader = world.client()
    reader.send(Basic.Qos(prefetch_count=2)).take()
    found = read(reader, "first").messages()
    assert [one.body for one in found] == [b"0", b"1"]
    reader.send(Basic.Nack(found[1].tag, multiple=True, requeue=True))
    assert reader.bodies() == [b"2", b"3"]
    reader.vanish()
    assert peer.declare("q", durable=True, passive=True).message_count == 5
    peer.consume("q")
    assert peer.bodies() == [b"%d" % i for i in range(5)]


def test_a_new_queue_of_an_old_name_shows_nothing_of_the_old_one(world):
    peer = declare(world.client())
    peer.publish(b"old")
    peer.call(Queue.Delete(queue="q"))
    declare(peer).publish(b"new")
    assert read(world.client(), "first").bodies() == [b"new"]
    world.close()
    world.open()
    assert read(world.client(), 0).bodies() == [b"new"]


def test_what_was_consumed_long_ago_is_read_again_after_a_restart(world):
    peer = declare(world.client())
    peer.publish(b"0", b"1")
    peer.consume("q", no_ack=True).take()
    world.close()
    world.open()
    assert read(world.client(), "first").bodies() == [b"0", b"1"]


def test_a_reader_is_told_when_its_queue_is_deleted_and_reads_no_more_when_it_is_cancelled(world):
    peer = declare(world.client())
    first, second = read(world.client(), "next"), read(world.client(), "next")
    for one in (first, second):
        one.take()
    assert isinstance(second.call(Basic.Cancel("s")), Basic.CancelOk)
    peer.publish(b"1")
    assert (first.bodies(), second.take()) == ([b"1"], [])
    assert peer.call(Queue.Delete(queue="q")).message_count == 1
    assert [type(one) for one in first.take()] == [Basic.Cancel]


def test_a_queue_that_deletes_itself_does_not_go_with_a_reader(world):
    peer = world.client()
    peer.declare("q", durable=True, auto_delete=True)
    reader = read(world.client(), "first")
    reader.take()
    assert isinstance(reader.call(Basic.Cancel("s")), Basic.CancelOk)
    read(reader, "first").vanish()
    world.turn()
    peer.consume("q").take()
    peer.call(Basic.Cancel("c"))
    assert peer.declare("q", passive=True).reply_code == 404


def test_a_queue_in_exclusive_use_is_not_read_either(world):
    peer = declare(world.client())
    peer.consume("q", exclusive=True).take()
    (close,) = read(world.client(), "first").take()
    assert (close.reply_code, close.reply_text) == (403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use")


def test_messages_of_devices_are_read_too(world):
    peer = declare(world.client())
    peer.send(Queue.Bind(queue="q", exchange="amq.topic", routing_key="#")).take()
    world.client_of_mqtt(b"d").publish(b"a/b", b"1", qos=1)
    (message,) = read(world.client(), "first").messages()
    assert offsets([message]) == [0]
    assert message.properties.headers["x-client-id"] == "d"


@pytest.mark.parametrize(
    ("declared", "options", "text"),
    [
        ({"durable": True}, {"exclusive": True}, "invalid arg 'x-stream-offset' for an exclusive consumer"),
        ({"durable": True}, {"arguments": {"x-stream-offset": "soon"}}, "invalid arg 'x-stream-offset' for queue 'r'"),
    ],
)
def test_what_cannot_be_read_so_is_refused(world, declared, options, text):
    peer = world.client()
    peer.declare("r", **declared)
    close = peer.consume("r", **{"arguments": {"x-stream-offset": "first"}, **options}).take()[-1]
    assert close.reply_code == 406
    assert text in close.reply_text


def test_many_messages_are_sent_in_turns_and_in_order(world):
    peer = declare(world.client())
    body = bytes(64 << 10)
    for _ in range(20):
        peer.publish(*[body] * 10)
    reader = read(world.client(), "first")
    found = []
    for _ in range(400):
        found += offsets(reader.messages())
        if len(found) == 200:
            break
        world.turn()
    assert found == list(range(200))


def test_direct_replies_are_not_read_again(world):
    reader = world.client().consume("amq.rabbitmq.reply-to", no_ack=True, arguments={"x-stream-offset": "first"})
    close = reader.take()[-1]
    assert close.reply_code == 406
    assert close.reply_text.endswith("has direct replies, and cannot be read again")


@pytest.mark.parametrize("declared", [{"exclusive": True}, {"auto_delete": True}, {"arguments": {"x-expires": 60_000}}])
def test_a_queue_that_ends_with_its_users_is_read_from_its_own_beginning_to_its_end(world, declared):
    peer = world.client()
    for body in (b"of the one before", b"own"):  # the light queue of the one is that of the next
        peer.declare("q", **declared)
        peer.publish(body)
        assert read(peer, "first", "a", no_ack=True).bodies() == [body]
        read(peer, "next", "b", no_ack=True).take()
        peer.publish(b"more", key="q")
        assert peer.bodies() == [b"more", b"more"]
        peer.send(Queue.Delete(queue="q")).take()
        world.turn()
    peer.declare("other", **declared)
    peer.publish(b"nobody's who read the last", key="other")
    assert peer.bodies() == []


@pytest.fixture
def late_world(tmp_path):
    """A world on an engine that answers late, and can be told to fail."""
    world = AmqpWorld(tmp_path, make_engine=make_late)
    yield world
    world.close()


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}, {"x-queue-type": "stream"}], ids=str)
@pytest.mark.parametrize("start", ["first", "last", "next", 0, "1h"])
def test_a_reader_of_a_queue_that_the_engine_cannot_open_loses_its_channel(late_world, arguments, start):
    peer, other = late_world.client(), late_world.client(channels=2)
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish(b"0", b"1", key="q", priority=2)
    late_world.engine.forget_opened()
    late_world.engine.unknown = 1.0
    other.send(Basic.Qos(prefetch_count=10)).take()
    read(other, start)
    told, close = other.take()
    assert isinstance(told, Basic.ConsumeOk)
    assert isinstance(close, Channel.Close)
    assert close.reply_code == 404
    assert close.reply_text == "NOT_FOUND - queue 'q' is not to be had now: nobody can tell where it ends"
    assert (close.class_id, close.method_id) == (60, 20)
    other.send(Channel.CloseOk())
    late_world.engine.unknown = 0.0
    other.send(Basic.Qos(prefetch_count=10), channel=2).take()  # the connection goes on, and another try succeeds
    other.consume("q", "s", channel=2, arguments={"x-stream-offset": "first"})
    assert other.bodies() == [b"0", b"1"]


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}], ids=str)
def test_a_reader_from_a_moment_that_the_engine_cannot_tell_loses_its_channel(late_world, arguments):
    peer, other = late_world.client(), late_world.client()
    peer.declare("q", durable=True, arguments=arguments)
    peer.publish(b"0", key="q")
    late_world.engine.failures = 1.0
    read(other, "1h")
    close = other.take()[-1]
    assert close.reply_text == "NOT_FOUND - queue 'q' is not to be had now: where it was at that moment cannot be told"


def test_a_reader_that_was_cancelled_before_its_queue_could_not_be_opened_is_told_nothing(late_world):
    peer, other = late_world.client(), late_world.client()
    peer.declare("q", durable=True)
    late_world.engine.forget_opened()
    late_world.engine.unknown = 1.0
    other.write(
        amqp.method(1, Basic.Consume(queue="q", consumer_tag="s", arguments={"x-stream-offset": "first"})),
        amqp.method(1, Basic.Cancel("s")),
    )
    assert [type(one) for one in other.take()] == [Basic.ConsumeOk, Basic.CancelOk]
    late_world.engine.unknown = 0.0
    assert other.declare("other").queue == "other"

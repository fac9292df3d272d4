"""Queues of the type stream: what they ask of their declarers and consumers, what they keep, and filters."""

from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.commands import Basic, Confirm, Queue, Tx

STREAM = {"x-queue-type": "stream"}
WHAT = "queue 's' in vhost '/'"


def declare(peer, **arguments):
    named = {"x-" + name.replace("_", "-"): value for name, value in arguments.items()}
    return peer.declare("s", durable=True, arguments={**STREAM, **named})


def stream_of(world, **arguments):
    peer = world.client()
    assert isinstance(declare(peer, **arguments), Queue.DeclareOk)
    peer.call(Basic.Qos(prefetch_count=100))
    return peer


def read(peer, tag="c", **arguments):
    """Return what a new consumer gets."""
    named = {"x-stream-" + name.replace("_", "-"): value for name, value in arguments.items()}
    return peer.consume("s", tag, arguments=named).bodies()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"durable": False}, "non-durable"),
        ({"durable": True, "exclusive": True}, "exclusive-owner"),
        ({"durable": True, "auto_delete": True}, "auto-delete"),
    ],
)
def test_a_stream_is_durable_and_everybodys(world, options, name):
    answer = world.client().declare("s", arguments=STREAM, **options)
    assert answer.reply_text == f"PRECONDITION_FAILED - invalid property '{name}' for {WHAT}"


def test_reading_consumes_nothing_and_begins_with_what_comes_next(world):
    peer = stream_of(world)
    peer.publish(b"1", b"2", key="s")
    assert read(peer) == []
    peer.publish(b"3", key="s")
    assert peer.bodies() == [b"3"]
    assert read(peer, "again", offset="first") == [b"1", b"2", b"3"]
    assert declare(peer).message_count == 3
    world.close()
    world.open()
    peer = stream_of(world)
    assert read(peer, offset="first") == [b"1", b"2", b"3"]
    assert declare(peer).consumer_count == 1


def test_a_stream_gives_as_many_as_its_consumer_has_room_for(world):
    peer = world.client()
    declare(peer)
    peer.publish(*[b"%d" % i for i in range(5)], key="s")
    peer.call(Basic.Qos(prefetch_count=2))
    got = peer.consume("s", arguments={"x-stream-offset": "first"}).messages()
    assert [one.body for one in got] == [b"0", b"1"]
    peer.send(Basic.Ack(got[1].tag, multiple=True))
    assert peer.bodies() == [b"2", b"3"]


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        (Basic.Get(queue="s"), 540, f"basic.get not supported by stream queues {WHAT}"),
        (Queue.Purge(queue="s"), 540, f"queue.purge not supported by stream queues {WHAT}"),
        (
            Basic.Consume(queue="s", no_ack=True),
            540,
            f"automatic acknowledgement not supported by stream queues {WHAT}",
        ),
        (
            Basic.Consume(queue="s", arguments={"x-priority": 1}),
            406,
            f"invalid arg 'x-priority' for {WHAT} of queue type rabbit_stream_queue",
        ),
    ],
)
def test_what_streams_do_not_do_is_refused_in_the_words_of_rabbitmq(world, method, code, text):
    answer = stream_of(world).call(method)
    assert (answer.reply_code, answer.reply_text.partition(" - ")[2]) == (code, text)


def test_a_consumer_without_a_prefetch_is_refused(world):
    peer = world.client()
    declare(peer)
    answer = peer.call(Basic.Consume(queue="s"))
    assert answer.reply_text == f"PRECONDITION_FAILED - consumer prefetch count is not set for '{WHAT}'"


@pytest.mark.parametrize("method", [Basic.Reject(1, requeue=True), Basic.Nack(1, requeue=False)])
def test_messages_of_a_stream_are_not_given_back(world, method):
    peer = stream_of(world)
    peer.publish(b"1", key="s")
    assert read(peer, offset="first") == [b"1"]
    answer = peer.call(method)
    assert isinstance(answer, commands.Connection.Close)
    assert answer.reply_text == f"NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues {WHAT}"


@pytest.mark.parametrize("has_published", [False, True])
@pytest.mark.parametrize("method", [Basic.Recover(requeue=True), Tx.Commit()])
def test_messages_of_a_stream_are_not_given_back_with_others_either(world, method, has_published):
    peer = world.client(channels=2)
    declare(peer)
    peer.declare("q")
    peer.publish(b"1", key="s")
    peer.publish(b"x", key="q")
    peer.call(Basic.Qos(prefetch_count=100))
    peer.call(Tx.Select())
    assert read(peer, offset="first") == [b"1"]
    assert peer.consume("q", "other", channel=2).bodies() == [b"x"]
    if isinstance(method, Tx.Commit):
        peer.send(Basic.Nack(1, requeue=True))
    if has_published:
        peer.publish(b"2", key="s")
    answer = peer.send(method).take()[-1]
    assert isinstance(answer, commands.Connection.Close)
    assert answer.reply_text == f"NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues {WHAT}"


def test_a_connection_that_ends_with_messages_of_a_stream_gives_nothing_back(world):
    peer = stream_of(world)
    peer.publish(b"1", key="s")
    read(peer, offset="first")
    peer.vanish()
    assert read(stream_of(world), offset="first") == [b"1"]


def test_an_exclusive_reader_of_a_stream_has_it_not_to_itself(world):
    peer = stream_of(world)
    peer.consume("s", "a", exclusive=True).take()
    assert read(peer, "b") == []
    peer.publish(b"1", key="s")
    assert peer.bodies() == [b"1", b"1"]


@pytest.mark.at_once(reason="looks at what the moment of an offset changes")
def test_a_stream_lets_go_of_what_is_too_old(world):
    peer = stream_of(world, max_age="10s")
    peer.publish(b"old", key="s")
    world.now_ms += 9_000
    peer.publish(b"new", key="s")
    world.now_ms += 2_000
    assert declare(peer, max_age="10s").message_count == 1
    assert read(peer, offset="first") == [b"new"]
    world.now_ms += 60_000
    world.amqp.tend(world.now_ms)
    world.turn()
    assert dict(world.amqp.vhosts.floors())[world.amqp.vhost.find("s").pop.queue_ref] == 2


def test_a_stream_keeps_so_many_bytes_of_the_newest(world, monkeypatch):
    monkeypatch.setattr("core.pop.byte_sums.MARK_MESSAGES", 2)
    peer = stream_of(world, max_length_bytes=10)
    for i in range(20):
        peer.publish(b"%03d" % i, key="s")
    kept = read(peer, offset="first")
    assert kept[-1] == b"019"
    assert 4 <= len(kept) <= 6


def publish_filtered(peer):
    for text, value in ((b"1", "a"), (b"2", "b"), (b"3", None), (b"4", "a"), (b"5", "ab")):
        peer.publish(text, key="s", headers={"x-stream-filter-value": value} if value else {"other": "a"})


def test_filters_are_exact(world):
    peer = stream_of(world)
    publish_filtered(peer)
    assert read(peer, "one", offset="first", filter="a") == [b"1", b"4"]
    assert read(peer, "two", offset="first", filter=["b", "ab"]) == [b"2", b"5"]
    assert read(peer, "none", offset="first", filter=[]) == []
    assert read(peer, "more", offset="first", filter="b", match_unfiltered=True) == [b"2", b"3"]
    assert len(read(peer, "all", offset="first", match_unfiltered=True)) == 5


def test_filters_take_no_room_of_the_prefetch_for_what_they_leave_out(world):
    peer = world.client()
    declare(peer)
    peer.call(Basic.Qos(prefetch_count=1))
    publish_filtered(peer)
    got = peer.consume("s", arguments={"x-stream-offset": "first", "x-stream-filter": "ab"}).messages()
    assert [(one.body, one.properties.headers["x-stream-offset"]) for one in got] == [(b"5", 4)]


def test_any_queue_is_read_with_a_filter_also_what_devices_sent(world):
    peer = world.client()
    peer.declare("q", durable=True)
    peer.call(Confirm.Select())
    peer.publish(b"1", key="q", headers={"x-stream-filter-value": "a"})
    peer.publish(b"2", key="q", headers={"x-stream-filter-value": "b"})
    peer.take()
    peer.consume("q", arguments={"x-stream-offset": "first", "x-stream-filter": "b"})
    assert peer.bodies() == [b"2"]


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [("x-stream-filter", 5, "byte"), ("x-stream-filter", [1], "array"), ("x-stream-match-unfiltered", "a", "longstr")],
)
def test_a_filter_of_a_wrong_type_is_refused(world, name, value, kind):
    answer = stream_of(world).call(Basic.Consume(queue="s", arguments={name: value}))
    assert answer.reply_text == f"PRECONDITION_FAILED - invalid arg '{name}' for {WHAT}: {{unacceptable_type,{kind}}}"


def test_a_deleted_stream_shows_nothing_in_the_next_of_its_name(world):
    peer = stream_of(world)
    peer.publish(b"1", key="s")
    assert peer.call(Queue.Delete(queue="s", if_unused=True)).message_count == 1
    world.turn()
    declare(peer)
    peer.publish(b"2", key="s")
    assert read(peer, offset="first") == [b"2"]

from __future__ import annotations

import pytest
from pamqp.commands import Basic

from core.lmq.queue_name import amqp_level_name
from core.stage import Stage
from tests.support.walks import all_of, take_steps

BEGAN_AT_1 = "began at offset 1"


def test_connections_say_who_came_in_and_what_the_client_calls_them(world):
    stranger = world.accept()
    named = world.log_in(properties={"connection_name": "billing"})
    entries = sorted(all_of(world.amqp.inventory().connections()))
    assert [(entry.conn_id, entry.user, entry.client) for entry in entries] == [
        (stranger.transport.conn_id, None, ""),
        (named.transport.conn_id, "guest", "billing"),
    ]
    assert list(world.amqp.inventory().sessions()) == []


def test_queues_say_what_is_ready_and_what_consumers_have(world):
    peer = world.client()
    peer.declare("q")
    peer.declare("unused")
    peer.publish(b"1", b"2", b"3")
    reader = world.client()
    reader.consume("q", no_ack=False)
    peer.declare("backlog")
    peer.publish(b"4", key="backlog")
    found = {entry.name: entry for entry in all_of(world.amqp.inventory().queues())}
    assert {name: (one.ready, one.unacked, one.readers, one.max_offset) for name, one in found.items()} == {
        "q": (0, 3, 1, 3),
        "unused": (0, 0, 0, 0),
        "backlog": (1, 0, 0, 1),
    }
    assert found["q"].light_queue == world.amqp.vhost.light_name("q").decode()


def test_queue_that_nobody_has_used_since_the_start_is_not_opened_for_its_figures(world):
    peer = world.client()
    peer.declare("unused", durable=True)
    peer.declare("backlog", durable=True)
    peer.publish(b"x", key="backlog", delivery_mode=2)
    world.close()
    world.open()
    all_of(world.amqp.inventory().queues())
    world.turn()  # in which the one with messages is opened
    found = {entry.name: entry.ready for entry in all_of(world.amqp.inventory().queues())}
    assert found == {"unused": 0, "backlog": 1}
    assert world.amqp.vhost.find("unused").opened is None


def test_walk_goes_on_while_queues_and_connections_go(world):
    peer = world.client()
    for i in range(10):
        peer.declare(f"q{i}", exclusive=True)
    queues, connections = world.amqp.inventory().queues(), world.amqp.inventory().connections()
    assert len(take_steps(queues, 4)) == 4
    peer.vanish()
    assert all_of(queues) == []
    assert all_of(connections) == []


def test_of_a_message_the_queue_says_how_far_it_is(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", b"3")
    light_queue = world.amqp.vhost.light_name("q")

    def stages():
        return [
            fate.stage.value
            for offset in range(3)
            for fate in all_of(world.amqp.inventory().fates(light_queue, offset))
        ]

    assert stages() == ["waits"] * 3
    reader = world.client()
    reader.consume("q", no_ack=False)
    assert stages() == ["taken"] * 3
    reader.send(Basic.Ack(1))
    assert stages() == ["done", "taken", "taken"]
    reader.vanish()
    assert stages() == ["done", "given back", "given back"]


@pytest.mark.parametrize("is_settled", [False, True])
@pytest.mark.parametrize("priority", [None, 5])
def test_one_that_reads_without_consuming_is_not_told_as_what_has_or_had_a_message(world, priority, is_settled):
    peer = world.client()
    peer.declare("q", durable=True, arguments={} if priority is None else {"x-max-priority": priority})
    both = world.client(channels=2).consume("q", "r", arguments={"x-stream-offset": "first"})
    peer.publish(b"x")
    if is_settled:
        both.send(Basic.Ack(1))
    light_queue = world.amqp.vhost.light_name("q")

    def told():
        (fate,) = all_of(world.amqp.inventory().fates(light_queue, 0))
        return fate.stage.value, fate.holder.split(" of ")[0]

    assert told() == ("waits", "")
    both.consume("q", "c", channel=2)
    assert told() == ("taken", "consumer c")
    both.send(Basic.Ack(1), channel=2)
    assert told() == ("done", "consumer c")


def test_of_a_message_with_a_priority_the_level_says_how_far_it_is(world):
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-priority": 5})
    peer.publish(b"low")
    peer.publish(b"high", priority=5)
    lowest = world.amqp.vhost.light_name("q")
    world.client().consume("q", no_ack=False)
    for level, light_queue in ((0, lowest), (5, amqp_level_name(lowest, 5))):
        (fate,) = all_of(world.amqp.inventory().fates(light_queue, 0))
        assert (fate.reader, fate.stage.value) == ("q in /", "taken"), level
    assert all_of(world.amqp.inventory().fates(amqp_level_name(lowest, 6), 0)) == []


def test_of_a_message_in_a_stream_each_consumer_that_reads_it_says_how_far_it_is(world):
    peer = world.client(channels=2)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.send(Basic.Qos(prefetch_count=2))
    for number in range(5):
        headers = {"x-stream-filter-value": "blue"} if number == 2 else {}
        peer.publish(b"%d" % number, key="s", headers=headers)
    peer.consume("s", "a", arguments={"x-stream-offset": 1})
    peer.consume("s", "b", arguments={"x-stream-offset": 1, "x-stream-filter": "blue"})
    peer.send(Basic.Ack(1), Basic.Ack(3))
    peer.consume("s", "other", channel=2, arguments={"x-stream-offset": "next"})  # refused: no prefetch
    light_queue = world.amqp.vhost.light_name("s")

    def told(tag):
        fates = [all_of(world.amqp.inventory().fates(light_queue, offset)) for offset in range(5)]
        assert [each[0][:3] for each in fates] == [("queue", "s in /", Stage.WAITS)] * 5
        named = f"consumer {tag} of guest at {peer.transport.peer}"
        found = [one for each in fates for one in each if one.reader == named]
        assert {(one.kind, one.note, one.holder in {"", named}) for one in found} <= {("reader", BEGAN_AT_1, True)}
        return [(one.stage.value, one.done_as, one.or_else, bool(one.holder)) for one in found]

    later, waits = ("done", "subscribed later", (), False), ("waits", "acknowledged", (), False)
    had, taken = ("done", "acknowledged", (), True), ("taken", "acknowledged", (), True)
    passed = ("done", "acknowledged", ("not wanted by its filter",), False)
    assert told("a") == [later, had, taken, taken, waits]
    assert told("b") == [later, passed, had, passed, passed]
    peer.send(Basic.Cancel("a"))
    assert (told("a"), told("other")) == ([], [])


@pytest.mark.at_once(reason="looks at what the moment of an offset changes")
def test_of_a_stream_nobody_acknowledged_what_it_does_not_keep(world):
    peer = world.client()
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "10s"})
    light_queue = world.amqp.vhost.light_name("s")
    peer.publish(b"old", key="s")
    world.now_ms += 9_000
    peer.publish(b"new", key="s")
    world.now_ms += 2_000
    world.amqp.tend(world.now_ms)
    world.turn()
    for _ in range(2):
        fates = [all_of(world.amqp.inventory().fates(light_queue, offset))[0] for offset in range(2)]
        assert [fate.stage.value for fate in fates] == ["done", "waits"]
        assert (fates[0].done_as, fates[0].may_be) == ("dropped: its stream keeps no more", ())
        world.close()
        world.open()

"""Queues have numbers in the order they came, and it is known of many at once how far each is."""

from __future__ import annotations

from array import array

from pamqp.commands import Queue

from gateway.amqp import queue_rows
from gateway.amqp.queue_rows import NextOffsets, QueueRows


def read_all(world, rows):
    rows.take_in()
    known = NextOffsets(world.broker)
    for _ in known.read():
        pass
    return dict(zip([queue.name for queue in rows.queues], rows.next_offsets(0, len(rows), known), strict=True))


def test_next_offsets_are_those_of_each_queue_also_when_others_came_and_went(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "BLOCK", 2)
    peer = world.client()
    for name in ("a", "b", "c"):
        peer.declare(name)
    peer.publish(b"1", b"2", key="a").publish(b"3", key="c")
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    assert read_all(world, rows) == {"a": 2, "b": 0, "c": 1}
    peer.call(Queue.Delete(queue="b"))
    peer.declare("d")
    peer.publish(b"4", b"5", b"6", key="d")
    assert read_all(world, rows) == {"a": 2, "b": 0, "c": 1, "d": 3}
    assert [rows.queues[number].is_deleted for number in range(4)] == [False, True, False, False]
    assert rows.ref(3) == world.broker.find_queue(rows.queues[3].light_name)


def test_a_queue_whose_light_queue_comes_later_is_found_then(world):
    peer = world.client()
    peer.declare("q")
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    (queue,) = rows._vhost
    name, queue.light_name = queue.light_name, b"%LMQ%amqp%later"
    assert read_all(world, rows) == {"q": 0}
    assert rows.ref(0) == -1
    queue.light_name = name
    peer.publish(b"x", key="q")
    assert read_all(world, rows) == {"q": 1}


def test_rows_are_worn_when_most_queues_are_deleted(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "BLOCK", 1)
    peer = world.client()
    rows = QueueRows(world.broker, world.amqp.vhosts.find("/"))
    for name in "abcd":
        peer.declare(name)
    rows.take_in()
    assert not rows.is_worn
    for name in "abc":
        peer.call(Queue.Delete(queue=name))
    assert rows.is_worn


def test_light_queues_are_read_in_blocks(world, monkeypatch):
    monkeypatch.setattr(queue_rows, "BLOCK", 1)
    peer = world.client()
    for name in "ab":
        peer.declare(name)
    known = NextOffsets(world.broker)
    assert len(list(known.read())) == world.broker.queue_count()
    assert known.numbers == array("q", bytes(8 * (world.broker.queue_count() + 1)))

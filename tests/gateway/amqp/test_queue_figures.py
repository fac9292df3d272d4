from __future__ import annotations

from pamqp.commands import Queue

from gateway.admin.rosters.held_figures import HeldFigures
from gateway.amqp.queue_figures import BLOCK, QueueFigures


def test_blocks_are_made_where_they_are_asked_for_and_know_nothing():
    figures = QueueFigures()
    assert figures.find(2) is None
    block = figures.get(2)
    assert figures.get(2) is figures.find(2) is block
    assert figures.find(1) is None
    assert set(block.counted_at) == set(block.seen_at) == {-1}
    assert {len(column) for column in (block.ready, block.oldest_ms, block.newest_ms, block.body_bytes)} == {BLOCK}


def test_what_is_forgotten_of_one_queue_stays_known_of_others():
    figures = QueueFigures()
    block = figures.get(1)
    for at in (3, 4):
        block.counted_at[at] = block.seen_at[at] = 9
    figures.forget(BLOCK + 3)
    figures.forget(5 * BLOCK)  # of which nothing was known
    assert (list(block.counted_at[3:5]), list(block.seen_at[3:5])) == ([-1, 9], [-1, 9])


def test_a_queue_that_was_asked_while_it_was_being_opened_begins_empty(world):
    peer, vhost, held = world.client(), world.amqp.vhost, HeldFigures(world.amqp.vhost)
    peer.declare("q")
    peer.publish(b"1", b"2", key="q")
    peer.call(Queue.Delete(queue="q"))
    world.turn()
    queue = vhost.add("q", durable=True, auto_delete=False, owner=None, arguments={})
    list(vhost.rows.take_in())
    held.read(queue.row, queue.row + 1, is_seen=False)
    world.turn()
    assert queue.is_open
    assert list(held.read(queue.row, queue.row + 1, is_seen=False).ready) == [0]

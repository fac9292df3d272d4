from __future__ import annotations

import shutil

from pamqp.commands import Queue

from core.queues.terms import QueueTerms
from gateway.amqp.queue_pops import BYTES_TABLE
from tests.support.amqp_door import AmqpWorld

COUNTED = QueueTerms(bytes_max=10)


def test_only_a_queue_with_a_limit_of_bytes_keeps_what_a_restart_needs(world):
    pops = world.amqp.vhost.pops
    pops.open(b"%LMQ%plain", QueueTerms(), 0)
    pops.open(b"%LMQ%counted", COUNTED, 0)
    rows = world.broker.table(BYTES_TABLE)
    assert (len(rows), b"%LMQ%counted" in rows) == (1, True)
    pops.drop(b"%LMQ%counted")
    pops.drop(b"%LMQ%plain")
    assert len(world.broker.table(BYTES_TABLE)) == 0
    assert world.broker.pop.find(b"%LMQ%plain", b"amqp") is None


def test_a_new_queue_of_an_old_name_begins_without_bytes(world):
    pops = world.amqp.vhost.pops
    peer = world.client()
    peer.declare("q", arguments={"x-max-length-bytes": 10})
    peer.publish(b"12345", key="q")
    queue = world.amqp.vhost.find("q")
    assert queue.pop.ready_bytes == 5
    end = world.broker.max_offset(queue.pop.queue_ref)
    pops.drop(queue.light_name)
    assert pops.open(queue.light_name, COUNTED, end).ready_bytes == 0


def test_no_commit_has_the_end_of_a_queue_without_that_of_its_bytes(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path / "0", make_engine=engine_maker, is_prompt=True)
    peer = world.client()
    peer.declare("q", durable=True, arguments={"x-max-length-bytes": 10})
    assert len(world.broker.table(BYTES_TABLE)) == 1
    world.flushes_by_itself = False
    peer.send(Queue.Delete(queue="q"))
    killed = shutil.copytree(world.data_dir, tmp_path / "1")
    world.close()
    world = AmqpWorld(killed, make_engine=engine_maker)
    assert (world.amqp.vhost.find("q"), len(world.broker.table(BYTES_TABLE))) == (None, 0)
    world.close()

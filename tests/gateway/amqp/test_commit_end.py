from __future__ import annotations

import shutil

import pytest
from pamqp.commands import Basic, Exchange, Queue, Tx

from core.message import StoredBatch
from core.store.embedded import EmbeddedEngine
from core.store.layout import UNIT_BEGINS, UNIT_ENDS, UNIT_GOES_ON
from core.store.torn_unit import part_of
from gateway.amqp.transaction import STEP_MESSAGES
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.mqtt_door import STORE
from tests.support.store import open_store, read_queue


@pytest.fixture
def world(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, make_engine=engine_maker)
    yield world
    world.close()


def test_commit_is_answered_and_what_it_settled_is_settled(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q")
    assert isinstance(peer.call(Tx.Select()), Tx.SelectOk)
    got = peer.call(Basic.Get(queue="q"))
    peer.send(Basic.Ack(got.tag))
    peer.publish(b"3", key="q")
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    other = world.client()
    assert other.declare("q").message_count == 2


def test_channel_that_is_gone_is_not_answered(world):
    peer = world.client()
    peer.declare("q")
    peer.call(Tx.Select())
    peer.publish(b"1", key="q")
    peer.send(Tx.Commit())
    peer.vanish()
    assert world.client().declare("q").message_count == 1


def test_commit_behind_an_unanswered_one_takes_no_turn_until_that_is_answered(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer = world.client(channels=2, heartbeat=10)
    peer.declare("q", durable=True)
    peer.call(Tx.Select())
    world.flushes_by_itself = False
    peer.publish(b"1", key="q", delivery_mode=2)
    peer.send(Tx.Commit())
    peer.publish(b"2", key="q", delivery_mode=2)
    peer.begin(amqp.method(1, Tx.Commit()), amqp.method(2, Queue.Declare(queue="q", passive=True)))
    world.step()
    assert peer not in world.waiting
    assert not peer.transport.wants_turn
    assert not peer.transport.is_reading
    world.now_ms += 60_000  # its heartbeats are not read
    peer.handler.on_timer(world.now_ms)
    assert not peer.is_closed
    peer.take()
    world.flushes_by_itself = True
    world.turn()
    assert peer.transport.is_reading
    committed, again, declared = sorted(peer.take(), key=lambda frame: frame.name == "Queue.DeclareOk")
    assert isinstance(committed, Tx.CommitOk)
    assert isinstance(again, Tx.CommitOk)
    assert declared.message_count == 2
    world.close()


def test_commit_behind_an_unanswered_one_is_done_though_the_client_sends_no_more(tmp_path):
    world = AmqpWorld(tmp_path, is_sync=True)
    peer = world.client()
    peer.declare("q", durable=True)
    peer.call(Tx.Select())
    world.flushes_by_itself = False
    peer.publish(b"1", key="q", delivery_mode=2)
    peer.send(Tx.Commit())
    peer.publish(b"2", key="q", delivery_mode=2)
    peer.begin(amqp.method(1, Tx.Commit()))
    peer.handler.on_eof(world.now_ms)
    world.flushes_by_itself = True
    world.turn()
    assert [type(frame) for frame in peer.take()] == [Tx.CommitOk, Tx.CommitOk]
    assert peer.is_closed
    assert world.client().declare("q", durable=True).message_count == 2
    world.close()


def parts(world, start):
    """Return the parts of units that the log holds from a place on."""
    batch = StoredBatch(4 * STEP_MESSAGES)
    world.store.scan(start, batch)
    return [part_of(batch, i) for i in range(batch.count)]


def make_peer(world):
    """Return a transactional channel, with queues behind an exchange that delays and one that does not."""
    peer = world.client(channels=2)
    for name, kind, arguments in (("later", "x-delayed-message", {"x-delayed-type": "fanout"}), ("now", "fanout", {})):
        declare = Exchange.Declare(exchange=name, exchange_type=kind, durable=True, arguments=arguments)
        assert isinstance(peer.call(declare), Exchange.DeclareOk)
        peer.declare(f"q-{name}", durable=True)
        assert isinstance(peer.call(Queue.Bind(queue=f"q-{name}", exchange=name)), Queue.BindOk)
    assert isinstance(peer.call(Exchange.Bind(destination="later", source="now")), Exchange.BindOk)
    assert isinstance(peer.call(Tx.Select()), Tx.SelectOk)
    return peer


@pytest.fixture
def peer(world):
    return make_peer(world)


def unit(count):
    return [UNIT_BEGINS, *[UNIT_GOES_ON] * (count - 2), UNIT_ENDS]


def test_a_commit_of_several_steps_is_one_unit(world, peer):
    start = world.store.written_until
    count = 2 * STEP_MESSAGES + 7
    peer.publish(*[b"%d" % i for i in range(count)], exchange="", key="q-now")
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    assert parts(world, start) == unit(count)
    start = world.store.written_until
    peer.publish(b"alone", exchange="", key="q-now")
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    world.client().publish(b"without", exchange="", key="q-now")
    assert parts(world, start) == [0, 0]


def test_copies_that_wait_belong_to_the_unit_and_what_has_no_queue_does_not(world, peer):
    start = world.store.written_until
    peer.publish(b"1", b"2", exchange="now", headers={"x-delay": 5_000})
    peer.publish(b"3", exchange="now")
    peer.publish(b"nowhere", exchange="", key="none")
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    assert parts(world, start) == unit(5)
    assert peer.declare("q-now", 2, durable=True, passive=True).message_count == 3


def test_a_commit_that_fails_leaves_what_it_published_and_later_messages_stay(world, peer):
    peer.call(Exchange.Declare(exchange="x", exchange_type="fanout"), 2)
    peer.publish(b"1", b"2", exchange="", key="q-now")
    peer.publish(b"3", exchange="x")
    peer.call(Exchange.Delete(exchange="x"), 2)
    start = world.store.written_until
    assert peer.call(Tx.Commit()).reply_code == 404
    world.client().publish(b"later", exchange="", key="q-now")
    assert parts(world, start) == [UNIT_BEGINS, UNIT_ENDS, 0]


class CopyingEngine(EmbeddedEngine):
    """Copies the data folder before each append: what a kill at that moment would leave."""

    copies = None

    def append_batch(self, batch, now_ms):
        if self.copies is not None:
            folder = self.store.data_dir
            self.copies.append(shutil.copytree(folder, folder.with_name(f"left-{len(self.copies)}")))
        EmbeddedEngine.append_batch(self, batch, now_ms)


@pytest.mark.at_once(reason="copies the files before each append")
def test_a_process_that_is_killed_between_the_appends_of_a_commit_leaves_nothing_of_it(tmp_path):
    world = AmqpWorld(tmp_path / "data", make_engine=CopyingEngine)
    peer = make_peer(world)
    world.client().publish(b"before", exchange="", key="q-now")
    world.engine.copies = []
    peer.publish(*[b"%d" % i for i in range(2 * STEP_MESSAGES)], exchange="", key="q-now")
    peer.publish(b"1", b"2", exchange="now", headers={"x-delay": 5_000})
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    folders, world.engine.copies = world.engine.copies, None
    assert peer.declare("q-now", 2, durable=True, passive=True).message_count == 2 * STEP_MESSAGES + 3
    world.close()
    assert len(folders) == 4  # two full steps, the copies, the rest
    for folder in folders:
        store = open_store(folder, STORE)
        found = [read_queue(store, key) for key in map(store.queue_key, range(store.queue_count()))]
        bodies = {body for queue in found for _, body in queue}
        store.close()
        assert b"before" in bodies
        assert not bodies & {b"0", b"1", b"2", b"1023", b"1024", b"2047"}

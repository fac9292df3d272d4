from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from core.message import StoredBatch
from gateway.amqp.transaction import STEP_MESSAGES
from gateway.amqp.unacked import ACK, DROP, REQUEUE, UnackedRing
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld


@pytest.fixture
def peer(world):
    peer = world.client(channels=2)
    assert isinstance(peer.call(Tx.Select()), Tx.SelectOk)
    peer.declare("q", durable=True)
    return peer


def count(peer, queue="q"):
    return peer.declare(queue, 2, durable=True, passive=True).message_count


def test_nobody_gets_what_is_not_committed(world, peer):
    peer.publish(b"1", b"2")
    assert count(peer) == 0
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    assert count(peer) == 2
    peer.publish(b"3")
    assert isinstance(peer.call(Tx.Rollback()), Tx.RollbackOk)
    assert isinstance(peer.call(Tx.Commit()), Tx.CommitOk)
    peer.publish(b"4")
    peer.vanish()
    other = world.client()
    other.consume("q")
    assert other.bodies() == [b"1", b"2"]


def test_what_comes_back_comes_before_the_commit_is_answered(peer):
    peer.publish(b"lost", key="none", mandatory=True)
    assert peer.take() == []
    peer.send(Tx.Commit())
    back, answer = peer.take()
    assert (back.method.reply_code, back.body) == (312, b"lost")
    assert isinstance(answer, Tx.CommitOk)


def test_acknowledgements_count_when_they_are_committed(world, peer):
    world.client().publish(b"1", b"2", b"3")
    peer.send(Basic.Qos(prefetch_count=3)).take()
    peer.consume("q")
    tags = [message.tag for message in peer.messages()]
    peer.send(Basic.Ack(tags[0]), Basic.Nack(tags[1], requeue=True))
    assert world.client().publish(b"4") is not None
    assert peer.messages() == []  # they are unacknowledged still, and the prefetch is full
    assert isinstance(peer.call(Tx.Rollback()), Tx.RollbackOk)
    peer.send(Basic.Ack(tags[1], multiple=True), Tx.Commit())
    answer, *messages = sorted(peer.take(), key=lambda one: not isinstance(one, Tx.CommitOk))
    assert isinstance(answer, Tx.CommitOk)
    assert [message.body for message in messages] == [b"4"]
    peer.send(Basic.Reject(tags[2], requeue=True), Tx.Commit())
    (again,) = peer.messages()
    assert (again.body, again.method.redelivered) == (b"3", True)
    peer.vanish()
    other = world.client()
    other.consume("q")
    assert sorted(other.bodies()) == [b"3", b"4"]


def test_a_message_is_acknowledged_once_in_a_transaction(world, peer):
    world.client().publish(b"1")
    peer.consume("q")
    (message,) = peer.messages()
    peer.send(Basic.Ack(message.tag))
    close = peer.call(Basic.Ack(message.tag))
    assert close.reply_text == f"PRECONDITION_FAILED - unknown delivery tag {message.tag}"


def test_recover_shows_again_what_the_transaction_has_not_settled(world, peer):
    world.client().publish(b"1", b"2")
    peer.consume("q")
    first, _ = peer.messages()
    peer.send(Basic.Ack(first.tag), Basic.Recover(requeue=True))
    assert peer.bodies() == [b"2"]
    peer.send(Tx.Commit()).take()
    peer.vanish()
    other = world.client()
    other.consume("q")
    assert other.bodies() == [b"2"]


def test_a_dead_letter_goes_when_its_rejection_is_committed(world, peer):
    peer.declare("dead", 2, durable=True)
    peer.declare("dying", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    world.client().publish(b"1", key="dying")
    peer.consume("dying")
    (message,) = peer.messages()
    peer.send(Basic.Reject(message.tag, requeue=False))
    world.turn()
    assert count(peer, "dead") == 0
    peer.send(Tx.Commit()).take()
    world.turn()
    assert count(peer, "dead") == 1


def test_a_large_transaction_is_committed_in_steps_and_in_order(world, peer):
    total = 2 * STEP_MESSAGES + 1
    peer.publish(*[b"%d" % i for i in range(total)])
    peer.send(Tx.Commit(), Queue.Declare(queue="after"))
    world.turn()
    commit, declare = peer.take()
    assert isinstance(commit, Tx.CommitOk)
    assert declare.queue == "after"
    other = world.client()
    other.consume("q")
    assert other.bodies() == [b"%d" % i for i in range(total)]


def test_messages_with_copies_and_with_headers_find_their_queues(peer):
    peer.declare("r", 2, durable=True)
    peer.call(Queue.Bind(queue="r", exchange="amq.headers", arguments={"a": 1}), 2)
    peer.publish(b"1", headers={"CC": ["r"]})
    peer.publish(b"2")
    peer.publish(b"3", exchange="amq.headers", headers={"a": 1})
    peer.publish(b"4", exchange="amq.headers", headers={"a": 2})
    peer.send(Tx.Commit()).take()
    assert (count(peer), count(peer, "r")) == (2, 2)


def test_what_cannot_be_published_is_said_at_once(peer):
    close = peer.publish(b"1").write(amqp.publish(1, b"2", exchange="none")).take()[0]
    assert close.reply_text == "NOT_FOUND - no exchange 'none' in vhost '/'"
    assert count(peer) == 0


def test_an_exchange_that_goes_before_the_commit_costs_the_channel(peer):
    peer.call(Exchange.Declare(exchange="x", exchange_type="fanout"), 2)
    peer.publish(b"1", exchange="x")
    peer.call(Exchange.Delete(exchange="x"), 2)
    assert peer.call(Tx.Commit()).reply_code == 404


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (None, Tx.Commit(), "channel is not transactional"),
        (None, Tx.Rollback(), "channel is not transactional"),
        (Tx.Select(), Confirm.Select(), "cannot switch from tx to confirm mode"),
        (Confirm.Select(), Tx.Select(), "cannot switch from confirm to tx mode"),
    ],
)
def test_what_does_not_go_together_is_refused(world, first, second, text):
    peer = world.client()
    if first is not None:
        peer.call(first)
    close = peer.call(second)
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


def test_what_one_connection_keeps_for_commits_is_bounded(world):
    peer = world.client()
    peer.call(Tx.Select())
    peer.declare("q")
    body = bytes(1 << 20)
    for _ in range(70):
        peer.publish(body)
    close = next(one for one in peer.take() if hasattr(one, "reply_code"))
    assert close.reply_code == 506


def test_a_commit_is_answered_when_it_is_on_disk(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=engine_maker)
    peer = world.client()
    peer.call(Tx.Select())
    peer.declare("q", durable=True)
    world.flush()
    peer.take()
    peer.begin(amqp.publish(1, b"1"), amqp.method(1, Tx.Commit()))
    assert peer.take() == []
    world.flush()
    world.turn()
    assert isinstance(peer.take()[0], Tx.CommitOk)
    world.store.close()
    world.open()
    other = world.client()
    other.consume("q")
    assert other.bodies() == [b"1"]
    world.close()


def stored(first, number):
    batch = StoredBatch(64)
    for i in range(number):
        batch.queue_offset[i] = first + i
    batch.count = number
    return batch


KINDS = st.sampled_from([ACK, DROP, REQUEUE])
STEPS = st.one_of(
    st.tuples(st.just("push"), st.integers(1, 20), st.just(ACK)),
    st.tuples(st.just("one"), st.integers(1, 60), KINDS),
    st.tuples(st.just("many"), st.integers(0, 60), KINDS),
    st.tuples(st.sampled_from(["commit", "rollback"]), st.just(0), st.just(ACK)),
)


@given(st.lists(STEPS, max_size=40))
def test_a_ring_in_transactions_is_what_sets_of_tags_say(steps):
    ring = UnackedRing()
    ring.take_slot(0, False)
    ring.held = {}
    live, held, done = set(), {}, []
    for what, number, kind in steps:
        if what == "push":
            first = ring.push(stored(ring.next_tag, number), 0)
            live |= set(range(first, first + number))
        elif what in {"commit", "rollback"}:
            taken, ring.held = ring.held, {}
            if what == "commit":
                ring.settle_held(taken)
                done += [(ring.settled_offset[i], ring.settled_kind[i]) for i in range(ring.settled_count)]
                live -= set(held)
            held = {}
        else:
            multiple = what == "many"
            known = number in live - set(held) or (multiple and number == 0)
            assert ring.settle(number, kind, multiple=multiple) == known
            if known:
                tags = {tag for tag in live - set(held) if number in {0, tag} or tag < number} if multiple else {number}
                held |= dict.fromkeys(tags, kind)
        assert ring.held == held
        assert ring.live == len(live)
        assert ring.in_flight[0] == len(live)
    assert len({offset for offset, _ in done}) == len(done)


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_commit_of_which_a_queue_refuses_a_message_does_the_rest_and_closes_its_channel(world, peer, overflow):
    arguments = {"x-max-length": 1, "x-overflow": overflow}
    peer.declare("small", 2, durable=True, arguments=arguments)
    peer.publish(b"0", key="q").send(Tx.Commit())
    peer.send(Basic.Get(queue="q"))
    committed, got = peer.take()
    assert isinstance(committed, Tx.CommitOk)
    peer.publish(b"1", b"2", key="small").publish(b"3", key="q").publish(b"4", key="none", mandatory=True)
    peer.send(Basic.Ack(got.tag), Tx.Commit())
    back, close = peer.take()
    assert back.body == b"4"
    assert (close.reply_code, close.reply_text) == (406, "PRECONDITION_FAILED - partial tx completion")
    assert (close.class_id, close.method_id) == (90, 20)
    taken = [peer.call(Basic.Get(queue=name, no_ack=True), 2).body for name in ("q", "small")]
    assert taken == [b"3", b"1"]  # and what was acknowledged is gone
    assert count(peer) == 0
    assert world.amqp_counts.refused["queue_full"] == 1


def test_a_commit_that_is_refused_is_answered_behind_what_waits_for_the_disk(tmp_path, engine_maker):
    world = AmqpWorld(tmp_path, is_sync=True, make_engine=engine_maker)
    peer = world.client()
    peer.declare("small", durable=True, arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.call(Tx.Select())
    said = Exchange.Declare(exchange="x", durable=True), Tx.Commit()
    declare, commit = [amqp.method(1, one) for one in said]
    peer.begin(amqp.publish(1, b"1", key="small", delivery_mode=2), declare, commit, amqp.method(1, Tx.Rollback()))
    world.turn()
    declared, close = peer.take()
    assert isinstance(declared, Exchange.DeclareOk)
    assert close.reply_code == 406
    world.close()

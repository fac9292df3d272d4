from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings, strategies as st
from pamqp.commands import Basic, Channel

from gateway.amqp import consuming, declaring
from tests.support import amqp
from tests.support.amqp_door import AmqpWorld
from tests.support.engines import MAKERS


@pytest.mark.here(reason="consumers share what is here at a time")
def test_consumers_of_a_queue_take_turns(world):
    peers = [world.client() for _ in range(3)]
    peers[0].declare("q")
    for peer in peers:
        peer.consume("q").take()
    peers[0].publish(*[b"%d" % i for i in range(30)], key="q")
    counts = [len(peer.messages()) for peer in peers]
    assert counts == [10, 10, 10]
    for _ in range(9):
        peers[0].publish(b"x", key="q")
    assert [len(peer.messages()) for peer in peers] == [3, 3, 3]


def test_prefetch_bounds_what_a_consumer_has(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(*[b"%d" % i for i in range(10)], key="q")
    peer.call(Basic.Qos(prefetch_count=3))
    peer.consume("q")
    assert peer.bodies() == [b"0", b"1", b"2"]
    peer.send(Basic.Ack(2, multiple=True))
    assert peer.bodies() == [b"3", b"4"]
    peer.send(Basic.Nack(3, requeue=False))
    assert peer.bodies() == [b"5"]


def test_a_global_prefetch_bounds_all_consumers_of_a_channel(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(*[b"%d" % i for i in range(10)], key="q")
    peer.call(Basic.Qos(prefetch_count=3, global_=True))
    peer.consume("q", "a").consume("q", "b")
    assert len(peer.messages()) == 3
    peer.send(Basic.Ack(1))
    assert len(peer.messages()) == 1
    peer.send(Basic.Qos(prefetch_count=0, global_=True))
    assert len(peer.messages()) == 6


def test_what_was_got_takes_no_room_from_the_consumers_of_a_channel(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(*[b"%d" % i for i in range(10)], key="q")
    peer.call(Basic.Qos(prefetch_count=2, global_=True))
    assert [peer.call(Basic.Get(queue="q")).tag for _ in range(2)] == [1, 2]
    assert peer.consume("q", "a").bodies() == [b"2", b"3"]
    assert peer.call(Basic.Get(queue="q")).body == b"4"
    peer.send(Basic.Ack(1))
    assert peer.bodies() == []
    peer.send(Basic.Ack(3))
    assert peer.bodies() == [b"5"]


def test_a_number_that_gets_had_counts_for_the_consumer_that_has_it_next(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(*[b"%d" % i for i in range(10)], key="q")
    peer.call(Basic.Qos(prefetch_count=2, global_=True))
    peer.send(Basic.Ack(peer.call(Basic.Get(queue="q")).tag))
    assert peer.consume("q", "a").bodies() == [b"1", b"2"]
    peer.send(Basic.Cancel("a"), Basic.Ack(0, multiple=True))
    peer.take()
    assert peer.call(Basic.Get(queue="q")).body == b"3"
    assert peer.consume("q", "b").bodies() == [b"4", b"5"]


def test_without_acknowledgement_a_message_is_done_when_it_is_sent(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q").consume("q", no_ack=True)
    assert peer.bodies() == [b"1", b"2"]
    peer.send(Channel.Close(200, "", 0, 0))
    peer.take()
    peer.call(Channel.Open())
    assert peer.declare("q", passive=True).message_count == 0


def test_rejected_messages_are_shown_again_or_dropped(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", b"3", key="q")
    peer.call(Basic.Qos(prefetch_count=3))
    peer.consume("q").take()
    peer.send(Basic.Reject(1, requeue=False), Basic.Reject(2, requeue=True), Basic.Nack(3, requeue=True))
    again = peer.messages()
    assert [(one.body, one.method.redelivered) for one in again] == [(b"2", True), (b"3", True)]
    peer.send(Basic.Nack(0, multiple=True, requeue=False))
    assert peer.take() == []
    assert peer.declare("q", passive=True).message_count == 0
    assert world.amqp_counts.dropped["rejected"] == 3
    assert world.amqp_counts.redelivered == 2


def test_what_a_get_gives_once_more_is_counted(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", key="q")
    for count in range(3):
        (got,) = peer.send(Basic.Get(queue="q")).messages()
        assert world.amqp_counts.redelivered == count
        peer.send(Basic.Reject(got.tag, requeue=True))


def test_recover_shows_everything_again(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q").consume("q").take()
    peer.send(Basic.Recover(requeue=True))
    answer, first, second = peer.take()
    assert isinstance(answer, Basic.RecoverOk)
    assert [(one.body, one.tag, one.method.redelivered) for one in (first, second)] == [
        (b"1", 3, True),
        (b"2", 4, True),
    ]


@pytest.mark.parametrize("take", ["consume", "get"])
def test_what_recover_showed_again_is_acknowledged(world, take):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q")
    if take == "consume":
        peer.consume("q").take()
    else:
        assert [peer.call(Basic.Get(queue="q")).body for _ in range(2)] == [b"1", b"2"]
    peer.send(Basic.Recover(requeue=True)).take()
    if take == "get":
        assert [peer.call(Basic.Get(queue="q")).body for _ in range(2)] == [b"1", b"2"]
    peer.send(Basic.Ack(4, multiple=True))
    peer.publish(b"3", key="q").consume("q", "other").take()
    peer.send(Basic.Ack(5))
    assert not peer.transport.is_closed
    peer.vanish()
    assert world.client().declare("q", passive=True).message_count == 0


def test_get_gives_one_message_at_a_time(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q")
    first = peer.call(Basic.Get(queue="q"))
    assert (first.body, first.tag, first.method.message_count) == (b"1", 1, 1)
    second = peer.call(Basic.Get(queue="q", no_ack=True))
    assert (second.body, second.tag, second.method.message_count) == (b"2", 2, 0)
    assert isinstance(peer.call(Basic.Get(queue="q")), Basic.GetEmpty)
    peer.send(Basic.Nack(1, requeue=True))
    third = peer.call(Basic.Get(queue="q"))
    assert (third.body, third.method.redelivered) == (b"1", True)
    peer.send(Basic.Ack(3))
    assert isinstance(peer.call(Basic.Get(queue="q")), Basic.GetEmpty)


def test_a_cancelled_consumer_gets_nothing_more_and_keeps_what_it_has(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", key="q").consume("q", "c").take()
    assert peer.call(Basic.Cancel("c")).consumer_tag == "c"
    peer.publish(b"2", key="q")
    assert peer.take() == []
    peer.send(Basic.Ack(1))
    assert peer.declare("q", passive=True).message_count == 1
    assert peer.call(Basic.Cancel("unknown")).consumer_tag == "unknown"


def test_an_exclusive_consumer_has_the_queue_to_itself(world):
    peer = world.client(channels=3)
    peer.declare("q")
    peer.consume("q", "a", exclusive=True).take()
    close = peer.call(Basic.Consume(queue="q"), 2)
    assert (close.reply_code, close.reply_text) == (403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use")
    peer.call(Basic.Cancel("a"))
    assert isinstance(peer.call(Basic.Consume(queue="q"), 3), Basic.ConsumeOk)


def test_a_right_tag_before_a_wrong_one_counts(world):
    peer = world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q").consume("q").take()
    peer.send(Basic.Ack(1), Basic.Ack(7), Basic.Ack(2))
    (close,) = peer.take()
    assert close.reply_text == "PRECONDITION_FAILED - unknown delivery tag 7"
    peer.send(Channel.CloseOk())
    peer.call(Channel.Open())
    assert peer.declare("q", passive=True).message_count == 1


def test_an_unacknowledged_message_comes_back_when_its_channel_closes(world):
    peer = world.client(channels=2)
    peer.declare("q")
    peer.publish(b"1", b"2", b"3", key="q").consume("q")
    assert peer.bodies() == [b"1", b"2", b"3"]
    peer.send(Basic.Ack(2))
    peer.call(Channel.Close(200, "", 0, 0))
    peer.consume("q", "d", channel=2)
    again = peer.messages()
    assert [one.body for one in again] == [b"1", b"3"]
    assert all(one.method.redelivered for one in again)
    peer.send(Basic.Ack(2, multiple=True), channel=2)
    assert peer.declare("q", channel=2, passive=True).message_count == 0


def test_an_unacknowledged_message_comes_back_when_its_connection_is_lost(world):
    peer, other = world.client(), world.client()
    peer.declare("q")
    peer.publish(b"1", b"2", key="q").consume("q")
    assert peer.bodies() == [b"1", b"2"]
    peer.send(Basic.Ack(1))
    other.consume("q")
    assert other.bodies() == []
    peer.vanish()
    (again,) = other.messages()
    assert (again.body, again.method.redelivered) == (b"2", True)


class Model:
    """What a client knows of one queue, against what the queue gives in the end."""

    def __init__(self, world):
        self.world = world
        self.next = self.tags = 0
        self.left: set[bytes] = set()
        self.peer = None
        self.open()

    def open(self):
        self.held: dict[int, bytes] = {}
        self.peer = self.world.client()
        self.peer.declare("q", durable=True)
        self.peer.send(Basic.Qos(prefetch_count=5))
        self.peer.take()

    def note(self):
        for message in self.peer.messages():
            assert message.body in self.left
            assert message.body not in self.held.values()
            self.held[message.tag] = message.body

    def publish(self, number):
        bodies = [b"%d" % (self.next + i) for i in range(number + 1)]
        self.next += len(bodies)
        self.left |= set(bodies)
        self.peer.publish(*bodies, key="q", delivery_mode=2)

    def consume(self, _):
        self.tags += 1
        self.peer.consume("q", f"c{self.tags}")

    def get(self, _):
        self.peer.send(Basic.Get(queue="q"))

    def settle(self, number, *, multiple=False, kind=Basic.Ack):
        tags = sorted(self.held)
        if not tags:
            return
        tag = tags[number % len(tags)]
        gone = [each for each in tags if each <= tag] if multiple else [tag]
        bodies = {self.held.pop(each) for each in gone}
        if kind is Basic.Ack:
            self.left -= bodies
            self.peer.send(Basic.Ack(tag, multiple=multiple))
        elif kind is Basic.Reject:
            self.left -= bodies
            self.peer.send(Basic.Nack(tag, multiple=multiple, requeue=False))
        else:
            self.peer.send(Basic.Nack(tag, multiple=multiple, requeue=True))

    def lose(self, number):
        if number % 2:
            self.peer.vanish()
        else:
            self.world.close()
            self.world.open()
        self.open()

    def drain(self):
        self.lose(1)
        self.peer.consume("q", "drain", no_ack=True)
        return self.peer.bodies()


WORK = {
    "publish": Model.publish,
    "consume": Model.consume,
    "get": Model.get,
    "ack": Model.settle,
    "ack all": functools.partial(Model.settle, multiple=True),
    "requeue": functools.partial(Model.settle, kind=Basic.Nack),
    "requeue all": functools.partial(Model.settle, kind=Basic.Nack, multiple=True),
    "reject": functools.partial(Model.settle, kind=Basic.Reject),
    "lose": Model.lose,
}


@pytest.mark.parametrize("make_engine", MAKERS.values(), ids=MAKERS)
@given(st.lists(st.tuples(st.sampled_from(sorted(WORK)), st.integers(0, 9)), max_size=60))
@settings(max_examples=40, deadline=None)
def test_every_message_is_done_once_or_still_there_whatever_happens(tmp_path_factory, make_engine, steps):
    world = AmqpWorld(tmp_path_factory.mktemp("queue"), make_engine=make_engine)
    model = Model(world)
    for name, number in steps:
        WORK[name](model, number)
        model.note()
    found = model.drain()
    assert sorted(found) == sorted(model.left)
    world.close()


@pytest.mark.here(reason="looks at the turn in which the message came")
def test_a_lone_message_goes_out_in_the_turn_in_which_it_came(world):
    peer = world.client()
    peer.declare("q")
    peer.consume("q").take()
    peer.handler.on_data(amqp.publish(1, b"x", key="q"), world.now_ms)
    world.broker.run_turn(world.now_ms)
    assert peer.bodies() == [b"x"]


def release_in_turns(world, monkeypatch):
    """Have ten deliveries of a connection that is gone come back in each turn."""
    for module in (consuming, declaring):
        monkeypatch.setattr(module, "RELEASED_A_STEP", 10)
    monkeypatch.setattr(world.amqp.vhosts.chores, "_now_ns", iter(range(0, 10**12, 10**6)).__next__)


def lose(world, peer):
    peer.transport.is_closed = True
    peer.handler.on_closed(world.now_ms)


@pytest.mark.at_once(reason="looks at the turn in which messages come back")
def test_very_many_deliveries_of_a_connection_that_is_gone_come_back_in_turns(world, monkeypatch):
    release_in_turns(world, monkeypatch)
    peer, other = world.client(), world.client()
    peer.declare("q")
    bodies = [b"%d" % i for i in range(95)]
    peer.publish(*bodies, key="q")
    assert len(peer.consume("q").bodies()) == 95
    queue = world.amqp.vhost.find("q")
    lose(world, peer)
    assert queue.pop.ready_count == 0
    counts = []
    while queue.pop.ready_count < 95:
        world.broker.run_turn(world.now_ms)  # in which others have theirs
        counts.append(queue.pop.ready_count)
    assert counts == [*range(10, 91, 10), 95]
    other.consume("q")
    found = other.messages()
    assert [(one.body, one.method.redelivered) for one in found] == [(body, True) for body in bodies]


def test_the_next_single_active_consumer_has_very_many_that_come_back_before_newer_messages(world, monkeypatch):
    release_in_turns(world, monkeypatch)
    peer, other = world.client(), world.client()
    peer.declare("q", arguments={"x-single-active-consumer": True})
    bodies = [b"%d" % i for i in range(35)]
    peer.call(Basic.Qos(prefetch_count=30))
    peer.publish(*bodies, key="q")
    assert len(peer.consume("q").bodies()) == 30
    other.consume("q")
    lose(world, peer)
    while world.amqp.vhost.find("q").pop.ready_count:
        world.broker.run_turn(world.now_ms)
    assert other.bodies() == bodies


def test_what_a_lost_connection_had_to_itself_is_free_before_very_many_deliveries_are_back(world, monkeypatch):
    release_in_turns(world, monkeypatch)
    peer, other = world.client(channels=2), world.client()
    for name in ("q", "alone"):
        peer.declare(name)
    peer.declare("own", exclusive=True)
    peer.publish(*[b"%d" % i for i in range(95)], key="q")
    assert len(peer.consume("q").bodies()) == 95
    peer.call(Basic.Consume(queue="alone", exclusive=True), channel=2)
    lose(world, peer)
    while world.amqp.vhost.find("own") is not None:
        world.broker.run_turn(world.now_ms)
    assert world.amqp.vhost.find("q").pop.ready_count < 95
    assert isinstance(other.call(Basic.Consume(queue="alone", exclusive=True)), Basic.ConsumeOk)

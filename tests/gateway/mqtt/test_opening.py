"""Subscriptions begin at the ends of their queues, which the engine tells first."""

from __future__ import annotations

import weakref
from functools import partial

import pytest

from core.errors import StoreClosedError
from gateway.mqtt.opening import Opening
from gateway.mqtt.reason_codes import ReasonCode
from tests.support import mqtt
from tests.support.late_engine import make_late


class Opener:
    """Answers when the test says so."""

    def __init__(self):
        self.asked = {}

    def open_queue(self, queue_ref, then):
        self.asked[queue_ref] = then


def test_it_is_over_with_the_last_of_its_queues_and_knows_those_that_failed():
    opener, calls = Opener(), []
    opening = Opening(opener)
    assert opening.is_over
    opening.ask(1)
    opening.ask(2)
    opening.on_over = lambda: calls.append(opening.failed)
    opener.asked[2](StoreClosedError("gone"))
    assert (opening.is_over, calls) == (False, [])
    opener.asked[1](None)
    assert (opening.is_over, calls) == (True, [{2}])


def test_it_lets_go_of_what_waited_once_it_is_over():
    class Connection:
        def go_on(self, _opening):
            pass

    opener, connection = Opener(), Connection()
    opening, waiting = Opening(opener), weakref.ref(connection)
    opening.ask(1)
    opening.on_over = partial(connection.go_on, opening)
    del connection
    opener.asked.pop(1)(None)
    assert waiting() is None  # no cycle keeps the connection until the collector runs


@pytest.fixture
def late(make_world):
    return make_world(make_engine=make_late)


def test_what_is_published_after_the_suback_comes_and_what_came_before_does_not(late):
    publisher = late.client(b"p")
    keeper = late.client(b"k", (b"t", 1))  # so that the queue is there, and longer than its known end
    publisher.send(*(mqtt.publish(b"t", b"before %d" % i) for i in range(5)))
    peer = late.client(b"c")
    peer.begin(mqtt.subscribe(1, (b"t", 1), (b"new/#", 1)), mqtt.PINGREQ)
    assert peer.take() == []
    late.turn()
    assert peer.take() == [mqtt.suback(1, 1, 1), mqtt.PINGRESP]
    publisher.send(mqtt.publish(b"t", b"after"), mqtt.publish(b"new/1", b"too"))
    assert peer.bodies() == [b"after", b"too"]
    assert len(keeper.bodies()) == 6


@pytest.mark.parametrize("level", [4, 5])
def test_a_filter_whose_queue_cannot_be_opened_is_refused_and_the_others_are_not(make_world, level):
    world = make_world(make_engine=make_late)
    connect, subscribe = (mqtt.connect, mqtt.subscribe) if level == 4 else (mqtt.connect_5, mqtt.subscribe_5)
    peer = world.dial().send(connect(b"c"), subscribe(1, (b"known", 0)))
    peer.take()
    world.engine.unknown = 1.0
    peer.send(subscribe(2, (b"known", 1), (b"unknown", 1)))
    assert peer.take()[-1][-2:] == bytes((1, ReasonCode.UNSPECIFIED_ERROR))
    assert world.broker.explain(b"unknown") == []
    world.engine.unknown = 0.0
    peer.send(subscribe(3, (b"unknown", 1)))
    assert peer.take()[-1][-1:] == b"\x01"


def test_a_client_that_goes_meanwhile_leaves_nothing(late):
    peer = late.client(b"c")
    peer.begin(mqtt.subscribe(1, (b"t", 1)))
    peer.vanish()
    assert late.broker.explain(b"t") == []
    assert late.door.subscribing.subscription_count == 0


def test_a_client_that_ends_its_side_meanwhile_is_answered_first(late):
    peer = late.client(b"c")
    peer.begin(mqtt.subscribe(1, (b"t", 1)))
    peer.end(mqtt.PINGREQ)
    assert peer.take() == [mqtt.suback(1, 1), mqtt.PINGRESP]
    assert peer.is_closed


def test_no_more_than_one_read_is_kept_while_a_client_waits(late):
    peer = late.client(b"c")
    peer.begin(mqtt.subscribe(1, (b"t", 1)))
    peer.begin(mqtt.PINGREQ)
    assert not peer.transport.is_reading
    late.turn()
    assert peer.transport.is_reading
    assert peer.take() == [mqtt.suback(1, 1), mqtt.PINGRESP]


def test_a_replay_waits_for_what_is_stored_too(make_world):
    world = make_world(make_engine=partial(make_late, seed=3))
    publisher = world.client(b"p")
    publisher.send(*(mqtt.publish(b"t", b"%d" % i, qos=1, packet_id=1 + i) for i in range(3)))
    world.client(b"other", (b"t", 1))
    peer = world.client(b"c").send(mqtt.subscribe(1, (b"$replay/0/t", 1)))
    publisher.send(mqtt.publish(b"t", b"3", qos=1, packet_id=9))
    assert peer.bodies() == [b"0", b"1", b"2", b"3"]

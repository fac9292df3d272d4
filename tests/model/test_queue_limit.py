"""With as many names of queues as the settings allow, each door refuses a new one, and what is there goes on."""

from __future__ import annotations

import pytest
from pamqp.commands import Channel, Queue

from tests.support import mqtt
from tests.support.amqp_door import AmqpWorld
from tests.support.mqtt_door import STORE
from tests.support.rocketmq_door import DoorSite, bodies_of

QUEUES_MAX = 1_000


def fill(store):
    while store.queue_count() < QUEUES_MAX:
        store.intern_queue(b"%%LMQ%%%d" % store.queue_count())


@pytest.fixture
def world(tmp_path):
    world = AmqpWorld(tmp_path, store_settings=STORE.model_copy(update={"queues_max": QUEUES_MAX}))
    yield world
    world.close()


def test_mqtt_refuses_a_new_filter_and_goes_on_with_others(world):
    subscriber = world.connect(b"s")
    subscriber.send(mqtt.subscribe(1, (b"old", 0))).take()
    fill(world.store)
    subscriber.send(mqtt.subscribe(2, (b"new", 1), (b"old", 1)))
    assert subscriber.take() == [mqtt.suback(2, 0x80, 1)]
    world.connect(b"p").send(mqtt.publish(b"new", b"1"), mqtt.publish(b"old", b"2"))
    assert subscriber.bodies() == [b"2"]
    assert world.counts.refused == {"subscription": 1}


def test_amqp_refuses_a_new_queue_and_goes_on_with_others(world):
    peer = world.client()
    peer.declare("old")
    peer.declare("passing", exclusive=True)
    fill(world.store)
    for options in ({}, {"exclusive": True}):
        answer = peer.declare("new", **options)
        assert isinstance(answer, Channel.Close)
        assert answer.reply_code == 406
        assert "the limit of 1000 names of queues is reached" in answer.reply_text
        peer.send(Channel.CloseOk(), Channel.Open()).take()
    peer.call(Queue.Delete(queue="passing"))
    assert isinstance(peer.declare("next", exclusive=True), Queue.DeclareOk)
    peer.publish(b"1", key="old").publish(b"2", key="next")
    assert peer.consume("old", "a").bodies() == [b"1"]
    assert peer.consume("next", "b").bodies() == [b"2"]


def test_rocketmq_refuses_a_send_to_a_new_queue_and_takes_the_others(tmp_path):
    site = DoorSite(tmp_path, queues_max=QUEUES_MAX)
    peer = site.connect()
    assert peer.send(b"1", topic="T").code == 0
    fill(site.store)
    answer = peer.send(b"2", topic="T", properties="INNER_MULTI_DISPATCH\x01%LMQ%new\x02")
    assert (answer.code, answer.remark) == (2, "the limit of 1000 names of queues is reached (store.queues_max)")
    assert peer.send(b"3", topic="T", properties="INNER_MULTI_DISPATCH\x01%LMQ%7\x02").code == 0
    assert bodies_of(peer.pull("T")) == [b"1", b"3"]
    site.close()

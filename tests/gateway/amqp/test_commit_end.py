from __future__ import annotations

import pytest
from pamqp.commands import Basic, Tx

from tests.support.amqp_door import AmqpWorld


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

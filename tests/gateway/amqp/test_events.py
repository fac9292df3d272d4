from __future__ import annotations

import dataclasses

import pytest

from gateway.amqp.channel import Channel, Incomplete
from gateway.amqp.events import ConnectionEnded, CutterPool, Event, PublishRun, SettleRun, make_publish_run


def test_events_are_immutable_records_but_for_a_run_that_may_be_cut():
    for kind in Event.__args__:
        if kind is not PublishRun:
            assert dataclasses.is_dataclass(kind)
            assert kind.__dataclass_params__.frozen


def test_events_name_their_channel():
    channel = Channel(3, Incomplete(0))
    assert SettleRun(channel).channel is channel
    assert make_publish_run(CutterPool(1), channel).channel is channel
    assert ConnectionEnded("why").reason == "why"


def test_cutter_is_used_again_once_its_run_is_released():
    pool = CutterPool(4)
    shown = pool.show()
    run = make_publish_run(pool, Channel(1, Incomplete(0)))
    assert run.cutter is shown
    assert pool.show() is not shown
    run.release()
    run.release()
    assert pool.take() is shown
    assert pool.take() is not shown


def test_run_counts_its_publishes_where_they_are_confirmed():
    channel, pool = Channel(1, Incomplete(0)), CutterPool(4)
    channel.is_confirming = True
    for first_number in (1, 3):
        cutter = pool.show()
        cutter.batch.count = 2
        assert make_publish_run(pool, channel).first_number == first_number
    channel.is_confirming = False
    assert make_publish_run(pool, channel).first_number == 0


@pytest.mark.parametrize("count", [1, 2])
def test_run_is_its_own_while_other_connections_of_the_door_go_on(count):
    pool = CutterPool(4)
    runs = []
    for body in (b"first", b"second"):
        for _ in range(count):
            pool.show().add(b"\x00\x01q", 0, b"\x00\x00", body, b"guest")
        runs.append(make_publish_run(pool, Channel(1, Incomplete(0))))
    batches = [run.batch for run in runs]
    assert [bytes(one.buf[one.body_start[0] : one.body_end[0]]) for one in batches] == [b"first", b"second"]

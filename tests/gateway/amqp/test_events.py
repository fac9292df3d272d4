from __future__ import annotations

import dataclasses

from gateway.amqp.channel import Channel, Incomplete
from gateway.amqp.events import ConnectionEnded, Event, PublishRun, SettleRun


def test_events_are_immutable_records():
    for kind in Event.__args__:
        assert dataclasses.is_dataclass(kind)
        assert kind.__dataclass_params__.frozen


def test_events_name_their_channel():
    channel = Channel(3, Incomplete(0))
    assert SettleRun(channel).channel is channel
    assert {field.name for field in dataclasses.fields(PublishRun)} >= {"channel", "batch", "first_number"}
    assert ConnectionEnded("why").reason == "why"

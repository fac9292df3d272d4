"""Messages go to the light queues of their priority, where a queue has levels."""

from __future__ import annotations

import pytest

from core.errors import QueueLimitError
from core.message import DispatchSet, PublishBatch, RefRoom, Route
from core.queues.levels import Levels, find_priority

REFS = {b"a": 1, b"b": 2, b"a3": 3, b"a5": 4}


def make_route(topic, queue_id, prefix, names):
    refs = [REFS[name] for name in names]
    return Route(topic, queue_id, 0, prefix, DispatchSet(list(names), refs, b"", RefRoom()))


class Levelled:
    def use_level(self, level):
        if level == 4:
            raise QueueLimitError(1)
        return b"a%d" % min(level, 5)


def said(priority):
    return b"x-amqp-priority\x01%b\x02" % priority


def make_batch(*extras):
    batch = PublishBatch(16)
    batch.count = len(extras)
    batch.topics += [b"t", b"nowhere"]
    batch.routes += [make_route(b"t", 0, b"p", [b"a", b"b"]), None]
    batch.extra = b"".join(extras)
    end = 0
    for i, extra in enumerate(extras):
        batch.extra_start[i], end = end, end + len(extra)
        batch.extra_end[i] = end
    return batch


def led(batch):
    return [list(batch.routes[batch.route_index[i]].dispatch.names) for i in range(batch.count)]


def test_each_message_goes_to_its_level_and_the_front_finds_its_batch_as_it_was():
    levels = Levels(make_route)
    levels.add(1, Levelled())
    batch = make_batch(b"", said(b"3"), said(b"200"), said(b"3"), said(b"4"))
    levels.divert(batch)
    assert led(batch) == [[b"a", b"b"], [b"a3", b"b"], [b"a5", b"b"], [b"a3", b"b"], [b"a", b"b"]]
    levels.restore(batch)
    levels.restore(batch)
    assert led(batch) == [[b"a", b"b"]] * 5
    assert len(batch.routes) == 2


def test_queues_without_levels_are_passed_by():
    levels = Levels(make_route)
    levels.add(9, Levelled())
    batch = make_batch(said(b"3"))
    levels.divert(batch)
    assert led(batch) == [[b"a", b"b"]]
    levels.add(1, Levelled())
    levels.drop(1)
    levels.drop(1)
    levels.divert(batch)
    assert led(batch) == [[b"a", b"b"]]


@pytest.mark.parametrize(
    ("text", "priority"),
    [
        (said(b"7"), 7),
        (b"a\x01b\x02" + said(b"255") + b"c\x01d\x02", 255),
        (b"no-" + said(b"7"), 0),
        (b"a\x01" + said(b"7"), 0),
        (b"no-" + said(b"7") + said(b"8"), 8),
        (said(b"1234"), 0),
        (said(b"-1"), 0),
        (said(b""), 0),
        (said("²".encode()), 0),
        (b"", 0),
    ],
)
def test_a_priority_is_a_property_of_its_name_alone(text, priority):
    assert find_priority(b"##" + text + b"##", 2, 2 + len(text)) == priority

"""Messages go past queues that have no room, and to the others all the same."""

from __future__ import annotations

from core.message import DispatchSet, PublishBatch, RefRoom, Route
from core.queues.full_queues import FullQueues, Room

REFS = {b"a": 1, b"b": 2, b"c": 3, b"beside": 4}


def make_route(topic, queue_id, prefix, names):
    refs = [REFS[name] for name in names]
    return Route(topic, queue_id, 0, prefix, DispatchSet(list(names), refs, b"", RefRoom()))


class Limited:
    def __init__(self, room):
        self.room = room
        self.refused = 0

    def find_room(self, wanted):
        return Room(0, self.room)

    def refuse(self, count):
        self.refused += count


def make_batch(count, *names):
    batch = PublishBatch(16)
    batch.count = count
    batch.topics.append(b"t")
    batch.routes.append(make_route(b"t", 0, b"p", names))
    return batch


def led(batch):
    return [list(batch.routes[batch.route_index[i]].dispatch.names) for i in range(batch.count)]


def test_each_message_goes_past_the_queues_that_are_full():
    queues, narrow, wide = FullQueues(make_route), Limited(1), Limited(2)
    queues.add(1, narrow)
    queues.add(3, wide)
    batch = make_batch(4, b"a", b"b", b"c")
    queues.divert(batch)
    assert led(batch) == [[b"a", b"b", b"c"], [b"b", b"c"], [b"b"], [b"b"]]
    assert queues.refused == [1, 2, 3]
    assert (narrow.refused, wide.refused) == (3, 2)
    assert len(batch.routes) == 3  # one for each set of queues, not for each message


def test_a_front_finds_its_batch_as_it_was():
    queues = FullQueues(make_route)
    queues.add(1, Limited(0))
    batch = make_batch(2, b"a", b"b")
    queues.divert(batch)
    queues.restore(batch)
    queues.restore(batch)
    assert led(batch) == [[b"a", b"b"]] * 2
    assert len(batch.routes) == len(batch.topics) == 1
    assert queues.refused == [0, 1]


def test_other_batches_pass_as_they_are():
    queues, limited = FullQueues(make_route), Limited(0)
    queues.add(1, limited)
    queues.divert(make_batch(1, b"a"))
    batch = make_batch(2, b"b")
    batch.topics.append(b"nowhere")
    batch.routes.append(None)
    queues.divert(batch)
    assert (led(batch), queues.refused) == ([[b"b"], [b"b"]], [])


def test_a_queue_that_is_dropped_is_asked_no_more():
    queues, limited = FullQueues(make_route), Limited(0)
    queues.add(1, limited)
    batch = make_batch(1, b"a")
    queues.divert(batch)
    queues.drop(1)
    queues.drop(1)
    again = make_batch(1, b"a")
    queues.divert(again)
    assert (led(again), queues.refused) == ([[b"a"]], [])


def test_what_is_refused_goes_elsewhere_where_that_is_said():
    queues = FullQueues(make_route)
    queues.add(1, Limited(0))
    queues.send_instead(1, b"beside")
    queues.add(2, Limited(0))
    batch = make_batch(1, b"a", b"b", b"c")
    queues.divert(batch)
    assert led(batch) == [[b"beside", b"c"]]

from __future__ import annotations

import asyncio

import pytest

from lmq import process_queue
from lmq.message import Message
from lmq.process_queue import LOCK_S, FlowLimits, ProcessQueue
from lmq.queues import MessageQueue

QUEUE = MessageQueue("T", "b", 0)


def message(offset: int, body: bytes = b"x") -> Message:
    return Message("T", body, {}, "T", 0, offset, 0, 0, 0, b"")


def filled(count: int, **limits) -> ProcessQueue:
    queue = ProcessQueue(QUEUE, 10, FlowLimits(**limits))
    queue.put([message(10 + i) for i in range(count)], 10 + count)
    return queue


def test_what_is_committed_is_the_first_that_is_not_done():
    queue = filled(4)
    assert queue.offset == 10
    queue.remove([message(11), message(12)])
    assert queue.offset == 10
    queue.remove([message(10)])
    assert queue.offset == 13
    queue.remove([message(13)])
    assert (queue.offset, len(queue)) == (14, 0)


def test_offsets_go_on_past_what_a_filter_left_out():
    queue = filled(0)
    queue.put([], 500)
    assert queue.offset == 500
    queue.put([message(510)], 600)
    assert queue.offset == 510


def test_the_first_are_given_in_their_order():
    queue = filled(4)
    queue.remove([message(11)])
    assert [one.queue_offset for one in queue.first(2)] == [10, 12]
    assert len(queue.first(99)) == 3


@pytest.mark.parametrize(
    ("limits", "has_room"),
    [
        ({"messages": 4}, False),
        ({"messages": 5}, True),
        ({"body_bytes": 4}, False),
        ({"body_bytes": 5}, True),
        ({"span": 3}, False),
        ({"span": 4}, True),
        ({"span": None}, True),
    ],
)
def test_more_is_pulled_while_there_is_room(limits, has_room):
    assert filled(4, **limits).has_room is has_room


def test_the_span_reaches_from_the_first_that_is_not_done():
    queue = filled(4, span=3)
    queue.remove([message(11), message(12), message(13)])
    assert not queue.has_room
    queue.remove([message(10)])
    assert queue.has_room


def test_a_message_removed_twice_counts_once():
    queue = filled(2, body_bytes=2)
    queue.remove([message(10), message(10)])
    queue.put([message(12)], 13)
    assert not queue.has_room


@pytest.mark.asyncio
@pytest.mark.parametrize("end", ["remove", "drop"])
async def test_room_is_waited_for(end):
    queue = filled(1, messages=1)
    waiting = asyncio.create_task(queue.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.drop() if end == "drop" else queue.remove([message(10)])
    await asyncio.wait_for(waiting, 20)


def test_a_lock_is_relied_on_for_a_while(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(process_queue.time, "monotonic", lambda: now[0])
    queue = filled(0)
    assert not queue.is_locked
    queue.note_lock(is_held=True)
    assert queue.is_locked
    now[0] += LOCK_S
    assert not queue.is_locked
    queue.note_lock(is_held=True)
    queue.note_lock(is_held=False)
    assert not queue.is_locked


@pytest.mark.parametrize("changes", [{"messages": 0}, {"body_bytes": 0}, {"span": 0}])
def test_limits_that_let_nothing_through_are_refused(changes):
    assert FlowLimits(span=None).span is None
    with pytest.raises(ValueError, match=r"=0; it is to be 1 or more$"):
        FlowLimits(**changes)

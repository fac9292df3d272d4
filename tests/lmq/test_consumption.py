from __future__ import annotations

import asyncio

import pytest

from lmq.consumption import ConcurrentConsumption, ConsumeStatus, OrderlyConsumption, Supervision
from lmq.message import Message
from lmq.process_queue import FlowLimits, ProcessQueue
from lmq.queues import MessageQueue
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio


class Returned:
    """Where messages that failed go; it may refuse them."""

    def __init__(self) -> None:
        self.messages = []
        self.takes = True

    async def give_back(self, message, delay_level):
        self.messages.append((message.queue_offset, delay_level))
        return self.takes

    async def send_copy(self, message, delay_level):
        return await self.give_back(message, delay_level)


def pulled(count: int, queue_id: int = 0) -> tuple[ProcessQueue, list[Message]]:
    queue = ProcessQueue(MessageQueue("T", "b", queue_id), 0, FlowLimits())
    messages = [Message("T", b"x", {}, "T", queue_id, i, 0, 0, 0, b"") for i in range(count)]
    queue.put(messages, count)
    queue.note_lock(is_held=True)
    return queue, messages


def orderly(listen, returned=None, **changes) -> OrderlyConsumption:
    options = {"batch_size": 1, "supervision": Supervision(9), "retries_max": None, "needs_lock": True} | changes
    return OrderlyConsumption(listen, returned, **options)


async def test_so_many_batches_are_worked_on_at_the_same_time_and_no_more():
    running, most = 0, 0

    async def listen(messages, context):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    queue, messages = pulled(20)
    ConcurrentConsumption(listen, Returned(), 2, Supervision(3)).submit(queue, messages)
    await until(lambda: not len(queue))
    assert most == 3


@pytest.mark.parametrize(
    ("status", "ack_index", "again"),
    [
        (None, None, []),
        (ConsumeStatus.SUCCESS, 0, [1, 2]),
        (None, 99, []),
        (None, -1, [0, 1, 2]),
        (ConsumeStatus.LATER, 1, [0, 1, 2]),
    ],
)
async def test_what_is_not_done_is_given_back_with_the_wanted_delay(status, ack_index, again):
    returned = Returned()

    async def listen(messages, context):
        context.ack_index, context.delay_level = ack_index, 7
        return status

    queue, messages = pulled(3)
    ConcurrentConsumption(listen, returned, 3, Supervision(1)).submit(queue, messages)
    await until(lambda: not len(queue))
    assert returned.messages == [(offset, 7) for offset in again]
    assert queue.offset == 3


async def test_what_cannot_be_given_back_is_not_done():
    returned = Returned()
    returned.takes = False

    async def listen(messages, context):
        context.ack_index = 0

    queue, messages = pulled(3)
    consumption = ConcurrentConsumption(listen, returned, 3, Supervision(1))
    consumption.submit(queue, messages)
    await until(lambda: len(returned.messages) == 2)
    await consumption.stop(1)
    assert queue.offset == 1


@pytest.mark.parametrize("make", [lambda listen: ConcurrentConsumption(listen, None, 1, Supervision(1)), orderly])
async def test_nothing_of_a_queue_that_was_dropped_is_begun(make):
    given = []
    queue, messages = pulled(5)

    async def listen(batch, context):
        given.extend(batch)
        queue.drop()

    consumption = make(listen)
    consumption.submit(queue, messages)
    await until(lambda: given)
    assert await consumption.finish(queue, 1)
    await consumption.stop(1)
    assert len(given) == 1


async def test_one_queue_is_in_order_and_others_go_on_beside_it():
    gate = asyncio.Event()
    given = []

    async def listen(messages, context):
        given.append((context.queue.queue_id, messages[0].queue_offset))
        if context.queue.queue_id == 0:
            await gate.wait()

    one, other = pulled(3), pulled(3, 1)
    consumption = orderly(listen)
    for queue, messages in (one, other):
        consumption.submit(queue, messages)
        consumption.submit(queue, messages)
    await until(lambda: not len(other[0]))
    assert [offset for number, offset in given if number == 0] == [0]
    gate.set()
    await until(lambda: not len(one[0]))
    assert [offset for number, offset in given if number == 0] == [0, 1, 2]


async def test_a_queue_whose_lock_is_lost_rests_until_it_is_locked_again():
    given = []
    queue, messages = pulled(3)

    async def listen(batch, context):
        given.append(batch[0].queue_offset)
        queue.note_lock(is_held=False)

    consumption = orderly(listen)
    consumption.submit(queue, messages)
    await until(lambda: given)
    assert await consumption.finish(queue, 1)
    assert given == [0]
    queue.note_lock(is_held=True)
    consumption.submit(queue, ())
    await until(lambda: len(given) == 2)


async def test_an_order_waits_no_longer_than_it_is_given():
    begun = asyncio.Event()

    async def listen(messages, context):
        begun.set()
        await asyncio.Event().wait()

    queue, messages = pulled(1)
    consumption = orderly(listen)
    consumption.submit(queue, messages)
    await begun.wait()
    assert not await consumption.finish(queue, 0.01)
    await consumption.stop(0.01)
    assert queue.offset == 0


async def test_a_rest_between_two_attempts_holds_up_no_stop():
    begun = asyncio.Event()

    async def listen(messages, context):
        begun.set()
        context.suspend_s = 60
        return ConsumeStatus.LATER

    queue, messages = pulled(1)
    consumption = orderly(listen)
    consumption.submit(queue, messages)
    await begun.wait()
    async with asyncio.timeout(20):
        await consumption.stop(60)


async def test_what_fails_for_good_goes_away_and_the_order_goes_on():
    returned = Returned()
    given = []

    async def listen(messages, context):
        given.append((messages[0].queue_offset, messages[0].reconsume_times))
        context.suspend_s = 0
        return ConsumeStatus.LATER if messages[0].queue_offset == 0 else None

    queue, messages = pulled(2)
    orderly(listen, returned, retries_max=2).submit(queue, messages)
    await until(lambda: not len(queue))
    assert given == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert returned.messages == [(0, -1)]


async def test_a_queue_that_comes_back_is_not_held_up_by_what_it_was():
    gate, given = asyncio.Event(), []

    async def listen(messages, context):
        given.append(messages[0].queue_offset)
        await gate.wait()

    old, messages = pulled(1)
    consumption = orderly(listen)
    consumption.submit(old, messages)
    await until(lambda: given)
    old.drop()
    new, messages = pulled(1)
    consumption.submit(new, messages)
    await until(lambda: len(given) == 2)
    gate.set()
    await until(lambda: not len(new))


@pytest.mark.parametrize("returned", [True, False, 1, 0, "LATER"])
async def test_what_is_returned_and_is_no_status_is_an_error_and_the_messages_come_again(returned, caplog):
    given_back = Returned()

    async def listen(messages, context):
        return returned

    queue, messages = pulled(1)
    ConcurrentConsumption(listen, given_back, 1, Supervision(1)).submit(queue, messages)
    await until(lambda: given_back.messages == [(0, 0)])
    assert f"the listener returned {returned!r}; it may return None or ConsumeStatus.SUCCESS" in caplog.text
    assert caplog.records[0].levelname == "ERROR"


async def test_a_listener_that_cannot_be_awaited_is_an_error_that_says_so(caplog):
    given_back = Returned()
    queue, messages = pulled(1)
    ConcurrentConsumption(lambda messages, context: None, given_back, 1, Supervision(1)).submit(queue, messages)
    await until(lambda: given_back.messages == [(0, 0)])
    assert "the listener returned None, which cannot be awaited; it is to be an async def" in caplog.text


@pytest.mark.parametrize("is_orderly", [False, True])
async def test_a_listener_that_is_held_up_is_given_nothing_until_it_may_go_on(is_orderly):
    supervision, given = Supervision(4), []

    async def listen(messages, context):
        given.extend(message.queue_offset for message in messages)
        if len(given) == 2:
            supervision.gate.pause()

    queue, messages = pulled(6)
    consumption = (
        orderly(listen, supervision=supervision)
        if is_orderly
        else ConcurrentConsumption(listen, Returned(), 1, supervision)
    )
    if not is_orderly:
        supervision.gate.pause()
    consumption.submit(queue, messages)
    for _ in range(20):
        await asyncio.sleep(0)
    assert given == ([0, 1] if is_orderly else [])
    supervision.gate.resume()
    await until(lambda: len(given) >= 2)
    supervision.gate.resume()
    await until(lambda: len(given) == 6)
    await consumption.stop(1)


@pytest.mark.parametrize("is_orderly", [False, True])
async def test_a_queue_that_is_held_up_is_left_at_once(is_orderly):
    supervision = Supervision(4)
    supervision.gate.pause()

    async def listen(messages, context):
        raise AssertionError("it is held up")

    queue, messages = pulled(3)
    options = {"supervision": supervision}
    consumption = (
        orderly(listen, **options) if is_orderly else ConcurrentConsumption(listen, Returned(), 1, supervision)
    )
    consumption.submit(queue, messages)
    await asyncio.sleep(0)
    queue.drop()
    async with asyncio.timeout(20):
        await consumption.finish(queue, 60)
        await consumption.stop(60)
    assert queue.offset == 0


async def test_what_became_of_messages_is_counted():
    supervision = Supervision(1)

    async def listen(messages, context):
        context.ack_index = 0

    queue, messages = pulled(3)
    consumption = ConcurrentConsumption(listen, Returned(), 3, supervision)
    consumption.submit(queue, messages)
    await until(lambda: queue.offset == 3)
    found = supervision.stats.of("T")
    assert (found.done.count, found.failed.count, found.failed_in_hour.count) == (1, 2, 2)
    await consumption.stop(1)

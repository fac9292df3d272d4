"""What a producer sends again, when, and until when: lost connections, busy brokers, moved topics."""

from __future__ import annotations

import asyncio

import pytest

from lmq import (
    BusyError,
    ConnectFailedError,
    ConnectionLostError,
    NotFoundError,
    OutMessage,
    Producer,
    SendResult,
)
from lmq.remoting.commands import Command, answer
from tests.support.remoting_server import stored
from tests.support.waiting import until

pytestmark = [pytest.mark.asyncio, pytest.mark.here(reason="one pull takes what is here")]


async def test_of_many_messages_those_that_were_lost_are_sent_again(scripted):
    def once(request: Command) -> Command | None:
        if scripted.codes().count(310) > 5:
            return stored(request)
        if scripted.codes().count(310) == 5:
            scripted.drop_all()
        return None

    scripted.on[310] = once
    async with Producer(scripted.address) as producer:
        results = await producer.send_many([OutMessage("T", b"x") for _ in range(10)])
    assert [result.queue_offset for result in results] == [7] * 10


async def test_a_send_is_repeated_with_the_same_key_after_a_lost_connection(scripted):
    def once(request: Command) -> Command | None:
        if scripted.codes().count(310) > 1:
            return stored(request)
        scripted.drop_all()
        return None

    scripted.on[310] = once
    async with Producer(scripted.address) as producer:
        result = await producer.send("T", b"x")
    assert result.queue_offset == 7
    sends = [request for request in scripted.requests if request.code == 310]
    assert len({request.ext["i"] for request in sends}) == 1


async def test_a_busy_broker_is_asked_again_more_and_more_seldom_until_the_time_is_over(scripted):
    scripted.on[310] = lambda request: answer(request, 2, "busy")
    async with Producer(scripted.address, retries=0, timeout_s=0.5) as producer:
        with pytest.raises(BusyError) as caught:
            await producer.send("T", b"x")
        assert caught.value.code == 2
        assert 3 <= scripted.codes().count(310) <= 6
        (error,) = await producer.send_many([OutMessage("T", b"y")])
    assert isinstance(error, BusyError)


@pytest.mark.parametrize("many", [False, True])
async def test_a_broker_that_was_busy_stores_each_message_once(scripted, many):
    scripted.on[310] = lambda request: (
        answer(request, 2, "busy") if scripted.codes().count(310) < 4 else stored(request)
    )
    async with Producer(scripted.address, retries=0) as producer:
        if many:
            (result,) = await producer.send_many([OutMessage("T", b"x")])
        else:
            result = await producer.send("T", b"x")
    assert result.queue_offset == 7
    assert scripted.codes() == [105, 310, 310, 310, 310]


@pytest.mark.parametrize("many", [False, True])
async def test_where_a_topic_is_is_asked_again_after_a_broker_that_did_not_know_it(scripted, many):
    scripted.on[310] = lambda request: answer(request, 17, "none")
    async with Producer(scripted.address) as producer:
        for _ in range(2):
            if many:
                (outcome,) = await producer.send_many([OutMessage("T", b"x")])
                assert isinstance(outcome, NotFoundError)
            else:
                with pytest.raises(NotFoundError):
                    await producer.send("T", b"x")
    assert scripted.codes() == [105, 310, 105, 310]


async def test_without_retries_a_loss_is_told_at_once(scripted):
    scripted.on[310] = lambda request: scripted.drop_all()
    async with Producer(scripted.address, retries=0) as producer:
        with pytest.raises(ConnectionLostError):
            await producer.send("T", b"x")


async def test_many_messages_go_on_in_their_order_when_the_broker_is_back(scripted):
    bodies: list[bytes] = []

    def store(request: Command) -> Command:
        bodies.append(bytes(request.body))
        return stored(request)

    def messages():
        for number in range(400):
            if number == 40:
                scripted.drop_all()
            yield OutMessage("T", b"%d" % number)

    scripted.on[310] = store
    async with Producer(scripted.address) as producer:
        results = await producer.send_many(messages(), in_flight_max=20)
    assert {type(result) for result in results} == {SendResult}
    assert bodies[-200:] == [b"%d" % number for number in range(200, 400)]


@pytest.mark.parametrize("retries", [0, 1])
async def test_many_messages_wait_together_for_a_broker_that_is_away(scripted, retries):
    scripted.on[310] = stored
    async with Producer(scripted.address, retries=retries, timeout_s=0.5) as producer:
        await producer.send("T", b"x")
        await scripted.vanish()
        async with asyncio.timeout(20):
            while any(client.is_open for client in producer._routes.clients()):
                await asyncio.sleep(0.001)
        async with asyncio.timeout(20):  # one after the other they would take 50 s
            results = await producer.send_many(OutMessage("T", b"%d" % i) for i in range(100))
        assert {type(result) for result in results} == {ConnectFailedError}
        await scripted.listen()
        async with asyncio.timeout(20):  # the pause between two tries may be longer than a send may take
            while isinstance((await producer.send_many([OutMessage("T", b"y")]))[0], ConnectFailedError):
                pass
        assert {type(result) for result in await producer.send_many([OutMessage("T", b"y")] * 10)} == {SendResult}


async def test_what_is_left_of_many_sends_that_are_cancelled_is_not_tried_again(scripted):
    scripted.on[310] = lambda request: None
    async with Producer(scripted.address, timeout_s=0.3) as producer:
        sending = asyncio.create_task(producer.send_many([OutMessage("T", b"%d" % i) for i in range(8)]))
        await until(lambda: scripted.codes().count(310) == 8)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert [task for task in asyncio.all_tasks() if task.get_coro().__qualname__.endswith("._finish")] == []

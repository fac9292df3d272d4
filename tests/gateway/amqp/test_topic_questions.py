"""AMQP clients whose topics a back end is asked about: each waits for the answer, and nobody else does."""

from __future__ import annotations

import asyncio

import aio_pika
import aiormq
import pytest
import pytest_asyncio

from gateway.settings.models import AuthSettings
from tests.support.backends import JudgeBackend
from tests.support.gateway import running_gateway

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("engine")]

REFUSED = aiormq.exceptions.ChannelAccessRefused


class Site:
    """A gateway whose users are the back end's."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.backend = JudgeBackend()
        gateway.authenticator.backends.use([self.backend])

    def connect(self, login="ann"):
        host, port = self.gateway.listening["amqp"]
        return aio_pika.connect(host=host, port=port, login=login, password="x" if login == "ann" else "guest")

    def asked(self):
        """Return what was asked, each once, in order."""
        return [(action, topic) for _, action, topic in self.backend.topics]


@pytest_asyncio.fixture
async def site(tmp_path):
    async with running_gateway(tmp_path, auth=AuthSettings()) as gateway:
        yield Site(gateway)


async def publish(channel, key, body=b"1"):
    exchange = await channel.get_exchange("amq.topic", ensure=False)
    await exchange.publish(aio_pika.Message(body), key)


async def test_topics_that_the_back_end_allows_are_published_to_and_bound_and_others_are_not(site):
    async with await site.connect() as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("q")
        await queue.bind("amq.topic", "open.#")
        for number in range(3):
            await publish(channel, "open.a", b"%d" % number)
        assert [(await queue.get(no_ack=True)).body for _ in range(3)] == [b"0", b"1", b"2"]
        assert site.asked() == [("subscribe", b"open/#"), ("receive", b"open/#"), ("publish", b"open/a")]
        with pytest.raises(REFUSED):
            await publish(channel, "shut.a")
        for key in ("shut.a", "#", "*.a", "open.#.x"):
            channel = await connection.channel()
            queue = await channel.declare_queue("q")
            with pytest.raises(REFUSED):
                await queue.bind("amq.topic", key)
    assert not [topic for _, topic in site.asked() if topic == b"open/#/x"]  # which is no filter of MQTT


async def test_what_waits_for_its_answer_holds_up_nobody_else_and_keeps_its_order(site):
    async with await site.connect() as connection, await site.connect("guest") as other:
        channel, theirs = await connection.channel(publisher_confirms=False), await other.channel()
        queue = await theirs.declare_queue("q")
        await queue.bind("amq.topic", "#")
        site.backend.gate.clear()
        for number in range(50):
            await publish(channel, f"open.{number % 7}", b"%d" % number)
        asking = asyncio.create_task(channel.declare_queue("behind"))
        async with asyncio.timeout(10):
            while not site.backend.topics:
                await asyncio.sleep(0.001)
        await publish(theirs, "now")
        assert (await queue.get(no_ack=True)).body == b"1"
        assert not asking.done()
        site.backend.gate.set()
        await asking
        assert [int((await queue.get(no_ack=True)).body) for _ in range(50)] == list(range(50))


async def test_back_end_that_does_not_answer_is_a_no_and_is_asked_again(site):
    async with await site.connect() as connection:
        channel = await connection.channel()
        site.backend.fails = True
        with pytest.raises(REFUSED):
            await publish(channel, "open.a")
        site.backend.fails = False
        channel = await connection.channel()
        await publish(channel, "open.a")


async def test_answers_that_are_not_remembered_are_asked_for_once_by_each_message(tmp_path):
    async with running_gateway(tmp_path, auth=AuthSettings()) as gateway:
        site = Site(gateway)
        site.backend = JudgeBackend()
        site.backend.settings = site.backend.settings.model_copy(update={"cache_s": 0, "cache_refused_s": 0})
        gateway.authenticator.backends.use([site.backend])
        async with await site.connect() as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("q")
            await queue.bind("amq.topic", "open.#")
            for _ in range(3):
                await publish(channel, "open.a")
            asked = [one for one in site.asked() if one == ("publish", b"open/a")]
            assert len(asked) == 3
            with pytest.raises(REFUSED):
                await publish(channel, "shut.a")


async def test_further_keys_are_asked_about_too(site):
    async with await site.connect() as connection:
        channel = await connection.channel()
        exchange = await channel.get_exchange("amq.topic", ensure=False)
        await exchange.publish(aio_pika.Message(b"1", headers={"CC": ["open.b"]}), "open.a")
        with pytest.raises(REFUSED):
            await exchange.publish(aio_pika.Message(b"1", headers={"CC": ["shut.b"]}), "open.a")
        assert {topic for _, topic in site.asked()} == {b"open/a", b"open/b", b"shut/b"}


async def test_transaction_publishes_what_was_allowed_when_it_was_sent(site):
    async with await site.connect() as connection:
        channel = await connection.channel(publisher_confirms=False)
        queue = await channel.declare_queue("q")
        await queue.bind("amq.topic", "open.#")
        async with channel.transaction():
            for number in range(5):
                await publish(channel, f"open.{number}")
        assert [(await queue.get(no_ack=True)).body for _ in range(5)] == [b"1"] * 5
        assert len([one for one in site.asked() if one[0] == "publish"]) == 5


async def test_letters_may_lead_to_topics_that_are_allowed(site):
    async with await site.connect() as connection:
        for key, is_allowed in (("open.dead", True), ("shut.dead", False)):
            channel = await connection.channel()
            arguments = {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": key}
            if is_allowed:
                await channel.declare_queue(f"of {key}", arguments=arguments)
            else:
                with pytest.raises(REFUSED):
                    await channel.declare_queue(f"of {key}", arguments=arguments)


async def test_connection_that_ends_while_it_waits_leaves_nothing(site):
    connection = await site.connect()
    channel = await connection.channel(publisher_confirms=False)
    site.backend.gate.clear()
    await publish(channel, "open.a")
    async with asyncio.timeout(10):
        while not site.backend.topics:
            await asyncio.sleep(0.001)
    (handler,) = site.gateway.doors["amqp"].connections
    handler.transport.abort()
    await connection.close()
    site.backend.gate.set()
    async with asyncio.timeout(10):
        while site.gateway.doors["amqp"].connections:
            await asyncio.sleep(0.001)
    async with await site.connect() as connection:
        await publish(await connection.channel(), "open.a")

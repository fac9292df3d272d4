"""When TCP acknowledges what a connection is read: with an answer, and at once where there is none."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.support.connections import QUICK_ACKS, count_segments, count_unacknowledged, open_site

pytestmark = [pytest.mark.asyncio, QUICK_ACKS]


class Talk:
    """One client, whose messages are answered at once where the handler echoes."""

    def __init__(self, client, handler):
        self.client = client
        self.handler = handler

    async def say(self):
        """Have the client send a byte; return how many segments of it are unacknowledged once that was handled."""
        seen = len(self.handler.received)
        self.client.send(b"y")
        async with asyncio.timeout(20):
            while len(self.handler.received) == seen:
                await asyncio.sleep(0)
        return count_unacknowledged(self.client)

    async def hear(self):
        """Take one byte that the client was sent."""
        assert await asyncio.get_running_loop().sock_recv(self.client, 1)


@contextlib.asynccontextmanager
async def talking():
    async with open_site() as site:
        site.prepare = lambda handler: setattr(handler, "echoes", False)
        client, handler = await site.connect_socket()
        yield Talk(client, handler)
        client.close()


async def test_messages_of_a_peer_that_gets_no_answers_are_acknowledged_once_they_are_handled():
    async with talking() as talk:
        assert [await talk.say() for _ in range(30)] == [0] * 30


async def test_answers_acknowledge_what_they_answer():
    async with talking() as talk:
        talk.handler.echoes = True
        for _ in range(3):
            assert await talk.say() == 0
            await talk.hear()


async def test_peer_that_is_answered_later_gets_one_segment_for_each_message():
    async with talking() as talk:
        for number in range(9):
            before = count_segments(talk.client)
            await talk.say()
            talk.handler.transport.write(b"!")  # such as after a sync
            await talk.hear()
            assert number < 3 or count_segments(talk.client) == before + 1  # once the kernel knows it as one

"""When TCP acknowledges what a connection is read: with an answer, or once a lone message has gone on."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from gateway.runtime import LONE_NS
from tests.support.connections import LATE_ACKS, StillClock, count_segments, count_unacknowledged, open_site

pytestmark = [pytest.mark.asyncio, LATE_ACKS]


class Talks:
    """Clients that get no answers, at a site whose clock says which of their messages come alone."""

    def __init__(self, site):
        self.site = site
        site.prepare = lambda handler: setattr(handler, "echoes", False)
        self.clients = []
        self.handlers = []

    async def connect(self, count):
        """Connect `count` clients, and have each handler note, at each read, what TCP owes its client."""
        for _ in range(count):
            client, handler = await self.site.connect_socket()
            handler.look = lambda client=client: count_unacknowledged(client)
            self.clients.append(client)
            self.handlers.append(handler)

    async def say(self, *, alone):
        """Have each client send a byte; return what each was owed when that was read, and what once it was handled."""
        self.site.clock.gap_ns = LONE_NS + 1 if alone else 0
        reads = len(self.handlers[0].seen)
        for client in self.clients:
            client.send(b"y")
        async with asyncio.timeout(5):
            while any(len(handler.seen) == reads for handler in self.handlers):
                await asyncio.sleep(0)
        return [
            (handler.seen[-1], count_unacknowledged(client))
            for client, handler in zip(self.clients, self.handlers, strict=True)
        ]


@contextlib.asynccontextmanager
async def talking(count):
    async with open_site(clock=StillClock()) as site:
        talks = Talks(site)
        await talks.connect(count)
        yield talks
        for client in talks.clients:
            client.close()


async def test_lone_messages_are_acknowledged_by_tcp_once_they_are_handled_and_not_before():
    async with talking(1) as talks:
        await talks.say(alone=True)
        for _ in range(3):
            assert await talks.say(alone=True) == [(1, 0)]


async def test_messages_that_come_together_are_acknowledged_as_they_are_read():
    async with talking(2) as talks:
        await talks.say(alone=True)
        assert await talks.say(alone=False) == [(1, 0)] * 2  # the last that was late
        for _ in range(3):
            assert await talks.say(alone=False) == [(0, 0)] * 2


async def test_answers_acknowledge_what_they_answer():
    async with talking(1) as talks:
        await talks.say(alone=True)
        (handler,) = talks.handlers
        handler.echoes = True
        for _ in range(3):
            assert (await talks.say(alone=True))[0][1] == 0


async def test_peer_that_is_answered_later_gets_one_segment_for_each_message():
    async with talking(1) as talks:
        (client,), (handler,) = talks.clients, talks.handlers
        for number in range(9):
            before = count_segments(client)
            await talks.say(alone=True)
            handler.transport.write(b"!")  # such as after a sync
            assert await asyncio.get_running_loop().sock_recv(client, 1)
            assert number < 3 or count_segments(client) == before + 1  # once it is known as one


async def test_message_after_an_answer_is_acknowledged_at_once_for_the_sake_of_nagle():
    async with talking(1) as talks:
        (handler,) = talks.handlers
        for _ in range(3):
            handler.echoes = True  # such as of a CONNECT, or a ping
            assert (await talks.say(alone=True))[0][1] == 0
            handler.echoes = False
            for _ in range(2):
                assert (await talks.say(alone=True))[0][1] == 0

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from gateway.net.streams.plain import PlainStream
from tests.support.connections import tcp_pair

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def open_stream():
    """Yield a stream and the peer's plain socket."""
    ours, theirs = tcp_pair()
    loop = asyncio.get_running_loop()
    sock, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    theirs.setblocking(False)
    try:
        yield PlainStream(sock), theirs
    finally:
        sock.abort()
        theirs.close()
        await asyncio.sleep(0)


async def test_what_the_system_takes_is_sent_without_a_turn_of_the_loop():
    async with open_stream() as (stream, theirs):
        assert stream.write(b"hello")
        assert stream.write(bytearray(b" you"))
        assert theirs.recv(20) == b"hello you"
        assert stream.waiting_bytes() == 0


async def test_what_the_system_does_not_take_waits_and_is_never_overtaken():
    async with open_stream() as (stream, theirs):
        sent, scratch = bytearray(), bytearray(1 << 20)
        while stream.write(scratch):
            sent += scratch
        sent += scratch
        scratch[:] = b"?" * len(scratch)  # it may be used again
        assert stream.waiting_bytes() > 0
        got = bytearray(theirs.recv(1 << 20))  # there is room, which the loop does not know yet
        assert not stream.write(b"end")
        sent += b"end"
        loop = asyncio.get_running_loop()
        while len(got) < len(sent):
            got += await asyncio.wait_for(loop.sock_recv(theirs, 1 << 20), 20)
        assert got == sent
        assert stream.write(b"more")
        assert stream.waiting_bytes() == 0


async def test_a_lost_stream_takes_no_more_and_touches_no_socket_of_that_number():
    async with open_stream() as (stream, theirs):
        stream.lose()
        assert stream.write(b"late")
        stream.acknowledge()
        assert stream.waiting_bytes() == 0
        with pytest.raises(BlockingIOError):
            theirs.recv(1)

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal

import httpx
import pytest
from fastapi import FastAPI

from gateway.admin import carried, server as module
from gateway.admin.bound import bind_socket
from gateway.admin.gate import CONNECTIONS_MAX, Gate
from gateway.admin.server import AdminServer, warm_up
from gateway.net.streams.tls import TlsLayer
from gateway.net.streams.tls_context import make_context
from tests.support.certificates import client_context, make_files
from tests.support.commands import run_python

pytestmark = pytest.mark.asyncio


async def _started(server):
    """Start a server; return the host and port that it answers on."""
    await server.start()
    return server._sock.getsockname()


def _api():
    api = FastAPI()

    @api.get("/")
    async def root():
        return "here"

    return api


async def test_it_serves_on_the_loop_and_stops():
    handler = signal.getsignal(signal.SIGTERM)
    server = AdminServer(_api(), await bind_socket("127.0.0.1", 0))
    host, port = await _started(server)
    async with httpx.AsyncClient(timeout=20) as client:
        assert (await client.get(f"http://{host}:{port}/")).json() == "here"
    assert signal.getsignal(signal.SIGTERM) is handler
    await server.stop()
    await server.stop()
    async with httpx.AsyncClient(timeout=20) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://{host}:{port}/")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "no HTTP, but TLS"),
        (b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00", "no HTTP, but MQTT"),
        (b"nonsense\r\n\r\n", "no HTTP"),
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n", "no HTTP"),
    ],
)
async def test_the_log_says_who_sent_what_is_no_http(caplog, data, reason):
    server = AdminServer(_api(), await bind_socket("127.0.0.1", 0))
    reader, writer = await asyncio.open_connection(*await _started(server))
    host, port = writer.get_extra_info("sockname")
    writer.write(data)
    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()
    await server.stop()
    assert caplog.messages[-1] == f"refused connection door=admin peer={host}:{port} reason={reason}"


async def test_it_serves_by_tls_and_refuses_what_is_none(caplog):
    caplog.set_level(logging.WARNING, "gateway.admin")
    context = make_context(make_files())
    server = AdminServer(_api(), await bind_socket("127.0.0.1", 0), lambda _: [TlsLayer(context)])
    host, port = await _started(server)
    async with httpx.AsyncClient(verify=client_context(), timeout=20) as client:
        for _ in range(3):
            assert (await client.get(f"https://{host}:{port}/")).json() == "here"
        large = await client.post(f"https://{host}:{port}/", content=b"x" * 300_000)
        assert large.status_code == 405
    async with httpx.AsyncClient(timeout=20) as client:  # as a browser that was told http://
        answer = await client.get(f"http://{host}:{port}/")
        assert (answer.status_code, answer.text) == (400, "HTTP came where HTTPS is spoken: use https://\n")
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"AMQP\x00\x00\x09\x01")
    assert (await reader.read())[:1] in {b"", b"\x15"}
    writer.close()
    assert "reason=tls: no TLS, but AMQP" in caplog.text
    assert "refused connection door=admin" in caplog.text
    assert "reason=tls: no TLS, but HTTP" in caplog.text
    await server.stop()


async def test_half_handshakes_have_their_limit_and_their_time(monkeypatch):
    monkeypatch.setattr(carried, "OPEN_S", 0.2)
    context = make_context(make_files())
    server = AdminServer(_api(), await bind_socket("127.0.0.1", 0), lambda _: [TlsLayer(context)])
    host, port = await _started(server)
    stuck = [await asyncio.open_connection(host, port) for _ in range(CONNECTIONS_MAX + 5)]
    for reader, writer in stuck:
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
    async with httpx.AsyncClient(verify=client_context(), timeout=20) as client:
        assert (await client.get(f"https://{host}:{port}/")).json() == "here"
    await server.stop()


async def test_half_handshakes_count_as_connections():
    noted = []
    context = make_context(make_files())
    gate = Gate(note=noted.append)
    server = AdminServer(_api(), await bind_socket("127.0.0.1", 0), lambda _: [TlsLayer(context)], gate=gate)
    address = await _started(server)
    stuck = [await asyncio.open_connection(*address) for _ in range(CONNECTIONS_MAX + 5)]
    async with asyncio.timeout(10):
        while len(noted) < 5:
            await asyncio.sleep(0.001)
    assert noted == ["connections_max"] * 5
    for _, writer in stuck:
        writer.close()
    await server.stop()


async def test_half_handshakes_do_not_hold_up_the_stop():
    context = make_context(make_files())
    server = AdminServer(_api(), await bind_socket("127.0.0.1", 0), lambda _: [TlsLayer(context)])
    reader, writer = await asyncio.open_connection(*await _started(server))
    writer.write(b"\x16\x03")
    while not server._waiting:
        await asyncio.sleep(0)
    await server.stop()
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 20) == b""
    writer.close()


async def test_client_that_stays_does_not_hold_up_the_stop():
    server = AdminServer(_api(), await bind_socket("127.0.0.1", 0))
    host, port = await _started(server)
    async with httpx.AsyncClient(timeout=20) as client:
        await client.get(f"http://{host}:{port}/")
        await server.stop()


async def test_a_wish_for_websocket_is_passed_over_and_the_request_answered(caplog):
    server = AdminServer(_api(), await bind_socket("127.0.0.1", 0))
    host, port = await _started(server)
    wish = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    async with httpx.AsyncClient(timeout=20) as client:
        answer = await client.get(
            f"http://{host}:{port}/", headers={**wish, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
        )
    assert (answer.status_code, answer.json()) == (200, "here")
    assert caplog.records == []
    await server.stop()


async def test_an_application_is_warmed_up_by_a_question_for_what_is_not_there():
    asked = []
    api = _api()

    @api.middleware("http")
    async def note(request, call_next):
        answer = await call_next(request)
        asked.append((request.url.path, answer.status_code))
        return answer

    await warm_up(api)
    assert asked == [(module.NOWHERE, 404)]


@pytest.mark.slow
async def test_what_long_answers_need_is_loaded_before_somebody_asks():
    program = (
        "import asyncio, sys\nfrom fastapi import FastAPI\nfrom gateway.admin.server import warm_up\n"
        "asyncio.run(warm_up(FastAPI()))\nprint('anyio._backends._asyncio' in sys.modules)"
    )
    assert run_python("-c", program).stdout == "True\n"

from __future__ import annotations

import asyncio
import ssl

import h11
import pytest
import trustme

from gateway.auth.backends.http_client import ANSWER_BYTES_MAX, EVENTS_AT_A_TIME, HttpClient, make_tls
from gateway.auth.backends.question import BackendError
from gateway.settings.models import SettingsError
from tests.support.http_server import HttpServer

pytestmark = pytest.mark.asyncio


async def test_request_says_what_it_is_and_the_answer_comes_back():
    async with HttpServer(lambda asked: (201, {"ETag": '"1"'}, "hello")) as server:
        client = HttpClient(server.url + "?a=b")
        answer = await client.send("POST", query="c=d", headers={"X-Key": "k"}, body=b"body")
        assert (answer.status, answer.headers["etag"], answer.body) == (201, '"1"', b"hello")
        (asked,) = server.asked
        assert (asked.method, asked.target, asked.body) == ("POST", "/auth?a=b&c=d", b"body")
        assert asked.headers["x-key"] == "k"
        assert asked.headers["host"] == f"localhost:{server.port}"
        client.close()


async def test_connections_are_used_again_and_made_anew_when_the_server_closed_them():
    async with HttpServer(lambda asked: "x") as server:
        client = HttpClient(server.url)
        for _ in range(3):
            await client.send("GET")
        assert server.connections == 1
        await server.stop()
        await server.start()
        assert (await client.send("GET")).body == b"x"
        server.answer = lambda asked: (200, {"Connection": "close"}, "x")
        await client.send("GET")
        await client.send("GET")
        assert server.connections == 3
        client.close()


async def test_many_ask_at_once():
    async with HttpServer(lambda asked: asked.target) as server:
        client = HttpClient(server.url)
        answers = await asyncio.gather(*(client.send("GET", query=str(number)) for number in range(40)))
        assert [answer.body for answer in answers] == [b"/auth?%d" % number for number in range(40)]
        client.close()


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"rubbish\r\n\r\n",
        b"\x16\x03\x01\x00\xa5" * 20,
        HEAD + b"Content-Length: 10\r\n\r\nshort",
        HEAD + b"Content-Length: 5",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
        HEAD + b"Content-Length: %d\r\n\r\n" % (10 * ANSWER_BYTES_MAX) + b"x" * (10 * ANSWER_BYTES_MAX),
        HEAD + b"\r\n" + b"x" * (ANSWER_BYTES_MAX + 1),
        HEAD + b"X: y\r\n" * 10_000 + b"\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;" + b"x" * 100_000 + b"\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 10_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + b"x" * 100,
    ],
)
async def test_answer_that_is_rubbish_or_huge_is_none(raw):
    async with HttpServer(lambda asked: raw) as server:
        client = HttpClient(server.url)
        with pytest.raises(BackendError):
            await client.send("POST", body=b"x")
        client.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000 + HEAD + b"Content-Length: 1\r\n\r\nx",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1_000 + b"0\r\n\r\n",
    ],
)
async def test_answer_in_many_pieces_lets_others_have_their_turn(raw, monkeypatch):
    taken = [0]  # events, in each turn of the loop
    following = h11.Connection.next_event

    def count(state):
        taken[-1] += 1
        return following(state)

    async def turn():
        while True:
            taken.append(0)
            await asyncio.sleep(0)

    monkeypatch.setattr(h11.Connection, "next_event", count)
    async with HttpServer(lambda asked: raw) as server:
        turning = asyncio.create_task(turn())
        client = HttpClient(server.url)
        assert set((await client.send("GET")).body) == set(b"x")
        client.close()
        turning.cancel()
    assert sum(taken) > 1_000
    assert max(taken) <= 2 * EVENTS_AT_A_TIME


async def test_server_that_says_nothing_or_is_not_there_is_a_failure():
    async with HttpServer(lambda asked: None) as server:
        client = HttpClient(server.url)
        with pytest.raises(BackendError, match="closed the connection"):
            await client.send("GET")
    with pytest.raises(ConnectionError):
        await client.send("GET")


async def test_server_that_drips_is_given_up_when_the_time_is_over():
    async def drip(asked):
        await asyncio.sleep(60)

    async with HttpServer(drip) as server:
        client = HttpClient(server.url)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.send("GET")


async def test_certificate_of_the_server_is_checked(tmp_path):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with HttpServer(lambda asked: "safe", ssl=context) as server:
        client = HttpClient(server.url, tmp_path / "ca.pem")
        assert (await client.send("GET")).body == b"safe"
        client.close()
        with pytest.raises(ssl.SSLError):
            await HttpClient(server.url).send("GET")
        with pytest.raises(ssl.SSLError):
            await HttpClient(server.url.replace("localhost", "127.0.0.1"), tmp_path / "ca.pem").send("GET")


async def test_file_that_holds_no_certificate_is_a_wrong_setting(tmp_path):
    with pytest.raises(SettingsError):
        make_tls(tmp_path / "none.pem")
    (tmp_path / "bad.pem").write_text("no")
    with pytest.raises(SettingsError):
        make_tls(tmp_path / "bad.pem")

"""Databases that speak PostgreSQL and mean ill, or are broken: nobody comes in, in bounded time and memory."""

from __future__ import annotations

import struct
import threading

import pytest

from gateway.auth.backends.question import BackendError, Question, Verdict
from gateway.auth.backends.sql_backend import SqlBackend
from gateway.settings.backends import SqlBackendSettings
from tests.support.hostile_postgres import BEGIN, END, WELCOME, HostilePostgres, columns, message, row
from tests.support.logins import quick_hash

psycopg = pytest.importorskip("psycopg")
from gateway.auth.backends.postgres_database import WIRE_BYTES_MAX, PostgresDatabase  # noqa: E402  # it needs the library

QUERY = "SELECT hash, groups FROM users WHERE name = %(username)s"
GOOD = BEGIN + row(quick_hash("secret").encode(), b"plant") + END
SENT_MAX = 64 * WIRE_BYTES_MAX  # what is in buffers when a flood is ended, on a busy machine, too
TIMEOUT_MS = 300


def ask(server, timeout_ms=TIMEOUT_MS):
    database = PostgresDatabase(server.dsn, timeout_ms)
    try:
        return database.fetch(QUERY, {"username": "ann"}, 257)
    finally:
        database.leave()


def flood(*, first, more):
    """Return what sends something, and then more without end."""

    def make(server):
        def answer(sock):
            server.send(sock, first)
            while True:
                server.send(sock, more)

        return answer

    return make


GIANT = b"D" + struct.pack(">IHI", 4 + 2 + 4 + (1 << 30), 1, 1 << 30)  # a row of one value of a gibibyte
NOTICE = message(b"N", b"SNOTICE\0C00000\0M" + b"x" * 20_000 + b"\0\0")
NEWS = message(b"A", struct.pack(">I", 7) + b"channel\0" + b"x" * 2_000 + b"\0")


@pytest.mark.parametrize(
    "make",
    [
        flood(first=BEGIN + GIANT, more=b"x" * 65_536),
        flood(first=BEGIN, more=row(b"h" * 100, b"g") * 500),
        flood(first=b"", more=NOTICE * 5),
        flood(first=b"", more=NEWS * 50),
    ],
    ids=["one row of a gibibyte", "rows", "notices", "notifications"],
)
def test_answer_without_end_is_cut(make):
    with HostilePostgres() as server:
        server.answer = make(server)
        with pytest.raises(BackendError, match=r"sends more than \d+ bytes"):
            ask(server, 60_000)
        assert (server.connections, server.sent < SENT_MAX) == (1, True)


def drip(sock):
    for one in BEGIN * 1_000:
        sock.sendall(bytes([one]))
        threading.Event().wait(0.05)  # slower than the time that there is


@pytest.mark.parametrize(
    "answer",
    [lambda sock: None, lambda sock: sock.sendall(BEGIN + row(b"hash", b"g")), drip],
    ids=["no", "half", "drips"],
)
def test_answer_that_does_not_end_is_ended(answer):
    with HostilePostgres(answer) as server:
        with pytest.raises(BackendError, match="takes too long"):
            ask(server)
        assert server.connections == 1  # and is not asked again


@pytest.mark.parametrize(
    "answer",
    [
        BEGIN + row(b"hash", b"g")[:9],
        b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9,
        message(b"1") + message(b"2") + columns(b"hash")[:-3],
        BEGIN + b"D" + struct.pack(">IH", 6, 60_000),
        BEGIN + b"D" + struct.pack(">I", 0xFFFF_FFFF),
        message(b"E", b"SFATAL\0C57P01\0Mgone\0\0"),
        message(b"G", b"\0\0\0"),
    ],
    ids=["half a row", "HTTP", "half a column", "columns that are not there", "a negative size", "an error", "COPY"],
)
def test_answer_that_is_rubbish_or_broken_off_is_none(answer):
    def send(sock):
        sock.sendall(answer)
        sock.close()

    with HostilePostgres(send) as server, pytest.raises(BackendError):
        ask(server, 2_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "welcome",
    [None, b"SSH-2.0-OpenSSH_9\r\n", WELCOME[:9], WELCOME[:9] + b"S" + struct.pack(">I", 1 << 30)],
    ids=["nothing", "another protocol", "half", "a huge parameter"],
)
def test_server_that_does_not_welcome_is_away(welcome):
    with HostilePostgres(welcome=welcome) as server, pytest.raises(BackendError):
        ask(server)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "said",
    [
        BEGIN + row(None, None) + END,
        BEGIN + row(b"", b"") + END,
        BEGIN + row(b"secret", b"") + END,
        BEGIN + row(b"\xff\xfe", b"") + END,
        BEGIN + row(b"a", b"") + row(b"b", b"") + END,
        message(b"1") + message(b"2") + columns() + row() + END,
        message(b"1") + message(b"2") + message(b"n") + END,
        GOOD.replace(b"plant", b"\0\1\2\3\4"),
    ],
    ids=[
        "NULL",
        "empty",
        "the password itself",
        "not text",
        "two hashes",
        "no columns",
        "no row description",
        "control",
    ],
)
async def test_nobody_comes_in_by_an_answer_that_is_no_hash_or_no_groups(said):
    with HostilePostgres(lambda sock: sock.sendall(said)) as server:
        assert await judge(server) in {Verdict.NO, None}
        server.answer = lambda sock: sock.sendall(GOOD)
        assert await judge(server) is Verdict.YES


async def judge(server):
    """Return what the back end says of ann, None where it gives no answer."""
    settings = SqlBackendSettings(
        kind="sql", dsn_env="DSN", query="SELECT hash, groups FROM users WHERE name = ${username}", timeout_ms=5_000
    )
    backend = SqlBackend(settings, {"DSN": server.dsn})
    try:
        return (await backend.ask(Question("mqtt", "ann", "secret", "", ""))).verdict
    except BackendError:
        return None
    finally:
        backend.close()

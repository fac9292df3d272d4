from __future__ import annotations

import os

import pytest

from gateway.auth.backends.question import BackendError, Question, Verdict
from gateway.auth.backends.sql_backend import SqlBackend
from gateway.settings.backends import SqlBackendSettings
from gateway.settings.models import SettingsError
from tests.support.logins import quick_hash
from tests.support.postgres import PostgresServer, find_tool

psycopg = pytest.importorskip("psycopg")
from gateway.auth.backends.postgres_database import PostgresDatabase, bounded  # noqa: E402  # it needs the library

pytestmark = pytest.mark.slow
with_server = pytest.mark.skipif(find_tool("initdb") is None, reason="PostgreSQL is not installed here")


@pytest.fixture(scope="module")
def server():
    with PostgresServer() as server:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE users (name text, hash text, groups text[])")
            for name, groups in (("ann", ["plant", "office"]), ("it's %s :x", [])):
                row = (name, quick_hash("secret"), groups)
                connection.execute("INSERT INTO users VALUES (%s, %s, %s)", row)
        yield server


@pytest.fixture
def database(server):
    database = PostgresDatabase(server.dsn, 2_000)
    yield database
    database.leave()


@with_server
def test_rows_are_read_with_named_values(database):
    query = f"SELECT name, '50%%' AS \"50%%\" FROM users WHERE name = {database.placeholder('username')}"
    assert database.fetch(query, {"username": "it's %s :x"}, 5) == (["name", "50%"], [("it's %s :x", "50%")])
    assert database.fetch(query, {"username": "' OR 1=1 --"}, 5)[1] == []
    assert database.literal("a % b") == "a %% b"


@with_server
@pytest.mark.asyncio
async def test_user_comes_in_by_its_hash_and_has_its_groups(server):
    query = "SELECT hash, groups FROM users WHERE name = ${username}::text AND hash LIKE '%$%'"
    backend = SqlBackend(SqlBackendSettings(kind="sql", dsn_env="DSN", query=query), {"DSN": server.dsn})
    ann = Question("mqtt", "ann", "secret", "", "")
    assert (await backend.ask(ann))[:2] == (Verdict.YES, ("plant", "office"))
    assert (await backend.ask(ann._replace(password="x"))).verdict is Verdict.NO
    assert (await backend.ask(ann._replace(user="bob"))).verdict is Verdict.NOT_MINE
    backend.close()


@with_server
def test_query_that_is_slow_is_stopped(server):
    database = PostgresDatabase(server.dsn, 50)
    with pytest.raises(BackendError, match="statement timeout"):
        database.fetch("SELECT pg_sleep(60)", {}, 1)
    database.leave()


@with_server
def test_query_that_is_wrong_is_told(database):
    with pytest.raises(BackendError, match="does not exist"):
        database.fetch("SELECT * FROM nothing", {}, 1)
    with pytest.raises(BackendError, match="no rows"):
        database.fetch("SET application_name = 'x'", {}, 1)


@with_server
def test_server_that_goes_away_is_told_and_one_that_comes_back_is_asked(server, database):
    query = "SELECT count(*) FROM users"
    assert database.fetch(query, {}, 1)[1] == [(2,)]
    server.stop()
    with pytest.raises(BackendError):
        database.fetch(query, {}, 1)
    server.start()
    assert database.fetch(query, {}, 1)[1] == [(2,)]
    server.stop()
    server.start()
    assert database.fetch(query, {}, 1)[1] == [(2,)]  # by a new connection, at once


@with_server
def test_password_that_is_wrong_is_told_without_it(server):
    with pytest.raises(BackendError) as caught:
        PostgresDatabase(server.dsn.replace("pg-secret", "pg-other"), 2_000).fetch("SELECT 1", {}, 1)
    assert "pg-other" not in str(caught.value)


def test_text_that_is_no_dsn_is_a_wrong_setting():
    with pytest.raises(SettingsError) as caught:
        PostgresDatabase("postgresql://ann:s3cret@[x/y", 100)
    assert "s3cret" not in str(caught.value)


def test_server_that_is_not_there_is_told():
    with pytest.raises(BackendError):
        PostgresDatabase(f"postgresql://x@/x?host=/tmp/none-{os.getpid()}", 100).fetch("SELECT 1", {}, 1)


HUGE = "repeat('x', 1000000)"


@with_server
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {HUGE} AS hash",
        f"SELECT 'hash' AS hash, {HUGE} AS groups -- of one",
        f"WITH one AS (SELECT {HUGE} AS hash) SELECT hash FROM one;",
        f"VALUES ({HUGE})",
    ],
)
def test_row_that_is_huge_is_refused_where_it_is_and_never_sent(database, query):
    with pytest.raises(BackendError, match="bytes are more than a row may have"):
        database.fetch(query, {}, 5)
    assert database.fetch("SELECT 1 AS one", {}, 5) == (["one"], [(1,)])


@with_server
def test_rows_without_end_are_cut_by_the_server_and_long_ones_are_none(database):
    assert len(database.fetch("SELECT generate_series(1, 10000000000)", {}, 5)[1]) == 5
    with pytest.raises(BackendError, match=r"the query gives more than \d+ bytes"):
        database.fetch("SELECT repeat('x', 60000) FROM generate_series(1, 100)", {}, 100)


@pytest.fixture
def seen(server):
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE seen (name text, hash text)")
        connection.execute("INSERT INTO seen VALUES ('ann', 'h')")
        yield connection
        connection.execute("DROP TABLE seen")


UPDATE = "UPDATE seen SET name = 'bob' WHERE name = %(username)s RETURNING hash"


@with_server
@pytest.mark.parametrize("query", [UPDATE, f"WITH one AS ({UPDATE}) SELECT hash FROM one", "DROP TABLE seen"])
def test_query_that_writes_is_refused_by_the_server(seen, database, query):
    with pytest.raises(BackendError, match="in a read-only transaction"):
        database.fetch(query, {"username": "ann"}, 5)
    assert seen.execute("SELECT name FROM seen").fetchall() == [("ann",)]


@with_server
def test_query_that_writes_is_asked_as_it_is_where_the_dsn_says_so(server, seen):
    database = PostgresDatabase(f"{server.dsn}?options=-c%20default_transaction_read_only%3Doff", 2_000)
    query = UPDATE
    assert database.fetch(query, {"username": "ann"}, 5) == (["hash"], [("h",)])
    assert seen.execute("SELECT name FROM seen").fetchall() == [("bob",)]
    database.leave()
    assert bounded(query, 5) == query
    assert bounded("WITH one AS (DELETE FROM seen RETURNING hash) SELECT hash FROM one", 5).startswith("WITH one")

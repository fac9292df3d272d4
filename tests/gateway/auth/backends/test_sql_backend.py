from __future__ import annotations

import sqlite3
import sys

import pytest

from gateway.auth.backends import sql_backend
from gateway.auth.backends.question import BackendError, Question, Verdict
from gateway.auth.backends.sql_backend import SqlBackend, open_database, read_groups
from gateway.auth.users import hash_for_scram, hash_password
from gateway.settings.backends import SqlBackendSettings
from gateway.settings.models import SettingsError
from tests.support.logins import quick_hash

pytestmark = pytest.mark.asyncio

QUERY = "SELECT hash, groups FROM users WHERE name = ${username}"
ANN = Question("mqtt", "ann", "secret", "c1", "192.0.2.7")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "users.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE users (name TEXT, hash TEXT, groups TEXT, client TEXT)")
        for row in (
            ("ann", quick_hash("secret"), "plant, office", "c1"),
            ("json", quick_hash("secret"), '["a b", "c"]', ""),
            ("null", None, None, ""),
            ("empty", "", None, ""),
            ("plain", "secret", None, ""),
            ("number", 7, None, ""),
            ("many", quick_hash("secret"), "a", ""),
            ("many", quick_hash("secret"), "b", ""),
            ("two", quick_hash("secret"), "a", ""),
            ("two", quick_hash("other"), "a", ""),
            ("odd", quick_hash("secret"), "[1]", ""),
            ("x' OR 1=1 --", quick_hash("secret"), None, ""),
        ):
            connection.execute("INSERT INTO users VALUES (?, ?, ?, ?)", row)
    connection.close()
    return path


@pytest.fixture
def backend(path):
    made = []

    def make(query=QUERY, **said):
        backend = SqlBackend(SqlBackendSettings(kind="sql", dsn=f"sqlite:{path}", query=query, **said), {})
        made.append(backend)
        return backend

    yield make
    for backend in made:
        backend.close()


@pytest.mark.parametrize(
    ("user", "password", "verdict", "groups"),
    [
        ("ann", "secret", Verdict.YES, ("plant", "office")),
        ("ann", "other", Verdict.NO, ()),
        ("json", "secret", Verdict.YES, ("a b", "c")),
        ("many", "secret", Verdict.YES, ("a", "b")),
        ("bob", "secret", Verdict.NOT_MINE, ()),
        ("null", "", Verdict.NO, ()),
        ("empty", "", Verdict.NO, ()),
        ("x' OR 1=1 --", "secret", Verdict.YES, ()),
        ("' OR 1=1 --", "secret", Verdict.NOT_MINE, ()),
        ("ann' --", "secret", Verdict.NOT_MINE, ()),
        ("a\0", "secret", Verdict.NO, ()),
    ],
)
async def test_row_of_the_name_says_the_password_and_the_groups(backend, user, password, verdict, groups):
    reply = await backend().ask(ANN._replace(user=user, password=password))
    assert (reply.verdict, reply.groups) == (verdict, groups)


@pytest.mark.parametrize("user", ["plain", "number", "two", "odd"])
async def test_row_that_cannot_be_understood_lets_nobody_in(backend, user):
    with pytest.raises(BackendError) as caught:
        await backend().ask(ANN._replace(user=user))
    assert "secret" not in str(caught.value)


async def test_query_may_ask_for_more_and_the_answer_depends_on_that(backend):
    one = backend(QUERY + " AND client = ${clientid}")
    assert (await one.ask(ANN)).verdict is Verdict.YES
    assert (await one.ask(ANN._replace(client="c2"))).verdict is Verdict.NOT_MINE
    assert one.key(ANN) != one.key(ANN._replace(client="c2"))
    assert one.key(ANN) == one.key(ANN._replace(host="192.0.2.8"))


@pytest.mark.parametrize("make", [hash_password, hash_for_scram])
async def test_each_form_of_hash_is_read(path, backend, make):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE users SET hash = ? WHERE name = 'ann'", (make("secret"),))
    connection.close()
    assert (await backend().ask(ANN)).verdict is Verdict.YES
    assert (await backend().ask(ANN._replace(password="x"))).verdict is Verdict.NO


async def test_unknown_name_takes_as_long_as_a_known_one(backend, monkeypatch):
    checked = []
    monkeypatch.setattr(sql_backend, "check_password", lambda password, kept: bool(checked.append(kept)))
    one = backend()
    await one.ask(ANN)
    await one.ask(ANN._replace(user="bob"))
    assert [kept.split("$")[:4] for kept in checked] == [["scrypt", "2", "1", "1"]] * 2


async def test_query_that_is_wrong_is_a_failure(backend):
    with pytest.raises(BackendError, match="no such column"):
        await backend("SELECT absent FROM users WHERE name = ${username}").ask(ANN)


async def test_database_that_is_none_is_a_wrong_setting(path, monkeypatch):
    for dsn in ("mysql://x/y", "users.db", f"sqlite:{path}.none"):
        with pytest.raises(SettingsError, match="dsn"):
            open_database(dsn, 100)
    with pytest.raises(SettingsError, match="DSN is not set"):
        SqlBackend(SqlBackendSettings(kind="sql", dsn_env="DSN", query=QUERY), {})
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "gateway.auth.backends.postgres_database", raising=False)
    with pytest.raises(SettingsError, match=r"lmq-gateway\[postgresql\]"):
        open_database("postgresql://x/y", 100)


async def test_groups_are_those_of_all_rows_once():
    rows = [("h", ["a", "b"]), ("h", "b c"), ("h", None)]
    assert read_groups(["hash", "groups"], rows) == ("a", "b", "c")
    assert read_groups(["hash"], [("h",)]) == ()
    with pytest.raises(BackendError):
        read_groups(["hash", "groups"], [("h", 7)])

"""A table of users in a database: one query says the hash of a password, and groups."""

from __future__ import annotations

import importlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from gateway.auth.backends.ask_threads import AskThreads
from gateway.auth.backends.question import (
    GROUPS_MAX,
    NO,
    NOT_MINE,
    BackendError,
    Question,
    Reply,
    Verdict,
    check_groups,
)
from gateway.auth.backends.sqlite_database import SqliteDatabase
from gateway.auth.check_threads import THREADS_MAX
from gateway.auth.users import PasswordHashError, check_password, make_decoy, make_usual_decoy
from gateway.settings.backends import POSTGRES, SQLITE, SqlBackendSettings, split_template
from gateway.settings.models import SettingsError

GROUPS = "groups"  # the column of that name
_BETWEEN = re.compile(r"[\s,]+")


class Database(Protocol):
    """What answers queries, on threads."""

    def placeholder(self, name: str) -> str:
        """Return how a named value stands in a query."""

    def literal(self, text: str) -> str:
        """Return how the rest of a query is written."""

    def fetch(
        self, query: str, values: Mapping[str, str], rows_max: int
    ) -> tuple[list[str], Sequence[Sequence[object]]]:
        """Return the names of the columns and the first rows; raise BackendError where there are none to be had."""

    def leave(self) -> None:
        """Let go of what this thread has."""


class SqlBackend:
    """One database.

    Args:
        settings: Which, and the query.
        environment: Holds what is in no file.

    Raises:
        SettingsError: Something that the settings name is missing.
    """

    def __init__(self, settings: SqlBackendSettings, environment: Mapping[str, str]) -> None:
        self.settings = settings
        dsn = settings.dsn
        if settings.dsn_env:
            dsn = environment.get(settings.dsn_env, "")
            if not dsn:
                raise SettingsError(f"dsn_env: {settings.dsn_env} is not set")
        self._database = open_database(dsn, settings.timeout_ms)
        parts = split_template(settings.query)
        self._names = tuple(dict.fromkeys(name for name, is_name in parts if is_name))
        self._query = "".join(
            self._database.placeholder(text) if is_name else self._database.literal(text) for text, is_name in parts
        )
        self._threads = AskThreads(settings.requests_max, "lmq-sql", self._database.leave)
        self._decoy = make_usual_decoy()
        self._hashing = threading.BoundedSemaphore(THREADS_MAX)  # which takes a core, and memory

    def key(self, question: Question) -> tuple[str, ...]:
        """Return what the query is told of a login, and the password."""
        return (question.password, *self._values(question).values())

    def _values(self, question: Question) -> dict[str, str]:
        values = question.values()
        return {name: values[name] for name in self._names}

    async def ask(self, question: Question) -> Reply:
        """Return what the database says of a login.

        Raises:
            BackendError: It says nothing that can be used.
        """
        return await self._threads.run(partial(self._ask, question))

    def _ask(self, question: Question) -> Reply:
        values = self._values(question)
        if any("\0" in value for value in values.values()):  # no text of a database
            return NO
        columns, rows = self._database.fetch(self._query, values, GROUPS_MAX + 1)
        password = question.password.encode()
        if not columns:
            raise BackendError("the query gives no columns")
        if not rows:
            self._check(password, self._decoy)  # so that time does not tell that there is no such name
            return NOT_MINE
        kept = {row[0] for row in rows}
        if len(kept) != 1:
            raise BackendError("the query gives rows with several passwords")
        (hashed,) = kept
        if not isinstance(hashed, str) or not hashed:
            return NO
        try:
            is_right = self._check(password, hashed)
        except PasswordHashError as error:
            raise BackendError(f"the first column of the query is {error}") from error
        self._decoy = make_decoy(hashed)
        return Reply(Verdict.YES, read_groups(columns, rows)) if is_right else NO

    def _check(self, password: bytes, hashed: str) -> bool:
        with self._hashing:
            return check_password(password, hashed)

    def close(self) -> None:
        """Let the threads end when they have done what was asked."""
        self._threads.close()


def open_database(dsn: str, timeout_ms: int) -> Database:
    """Return the database that a text names.

    Raises:
        SettingsError: It names none, or what speaks to it is not installed.
    """
    if dsn.startswith(SQLITE):
        return SqliteDatabase(Path(dsn.removeprefix(SQLITE)), timeout_ms)
    if not dsn.startswith(POSTGRES):
        raise SettingsError("dsn: must begin with sqlite: or postgresql://")
    try:
        module = importlib.import_module("gateway.auth.backends.postgres_database")
    except ImportError as error:
        raise SettingsError(f"needs the extra postgresql: pip install 'lmq-gateway[postgresql]' ({error})") from error
    database: Database = module.PostgresDatabase(dsn, timeout_ms)
    return database


def read_groups(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[str, ...]:
    """Return the groups of all rows: texts with spaces or commas between, a list, or a list in JSON.

    Raises:
        BackendError: They are something else.
    """
    if GROUPS not in columns:
        return ()
    place = columns.index(GROUPS)
    names = [name for row in rows for name in _read_names(row[place])]
    return check_groups(tuple(dict.fromkeys(names)))


def _read_names(said: object) -> Sequence[str]:
    if said is None:
        return ()
    if isinstance(said, str) and said.startswith("["):
        try:
            said = json.loads(said)
        except (ValueError, RecursionError) as error:
            raise BackendError("its groups are not a JSON list") from error
    if isinstance(said, str):
        return [name for name in _BETWEEN.split(said) if name]
    return check_groups(said)

"""SQLite as a database of users: read only, a connection a thread."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from gateway.auth.backends.question import BackendError
from gateway.auth.backends.row_bounds import FIELD_BYTES_MAX, read_rows
from gateway.settings.models import SettingsError

STEPS = 10_000  # of SQLite's machine between two looks at the time


class SqliteDatabase:
    """One file.

    Args:
        path: Where it is.
        timeout_ms: For one question.

    Raises:
        SettingsError: There is no such file.
    """

    def __init__(self, path: Path, timeout_ms: int) -> None:
        if not path.is_file():
            raise SettingsError(f"dsn: there is no file {path}")
        self._address = f"file:{quote(str(path.absolute()))}?mode=ro"
        self._timeout_s = timeout_ms / 1000
        self._own = threading.local()

    @staticmethod
    def placeholder(name: str) -> str:
        """Return how a named value stands in a query."""
        return f":{name}"

    @staticmethod
    def literal(text: str) -> str:
        """Return how the rest of a query is written."""
        return text

    def fetch(
        self, query: str, values: Mapping[str, str], rows_max: int
    ) -> tuple[list[str], Sequence[Sequence[object]]]:
        """Return the names of the columns and the first rows.

        Raises:
            BackendError: The database gives none.
        """
        until_s = time.monotonic() + self._timeout_s
        try:
            connection = self._connect()
            connection.set_progress_handler(lambda: time.monotonic() > until_s, STEPS)
            with contextlib.closing(connection.execute(query, dict(values))) as cursor:
                return [column[0] for column in cursor.description or ()], read_rows(cursor.fetchone, rows_max)
        except sqlite3.Error as error:
            self.leave()
            raise BackendError(str(error)) from error

    def _connect(self) -> sqlite3.Connection:
        known: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if known is None:
            known = sqlite3.connect(self._address, uri=True, timeout=self._timeout_s, isolation_level=None)
            known.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, FIELD_BYTES_MAX)  # a longer one is an error, and never read
            self._own.connection = known
        return known

    def leave(self) -> None:
        """Close the connection of this thread."""
        known = self._own.__dict__.pop("connection", None)
        if known is not None:
            known.close()

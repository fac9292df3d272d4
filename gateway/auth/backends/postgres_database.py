"""PostgreSQL as a database of users: a connection a thread, through psycopg.

The library is that of the extra `postgresql`: import this module where such a database is asked only.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence

import psycopg

from gateway.auth.backends.answer_watch import AnswerWatch
from gateway.auth.backends.question import BackendError
from gateway.auth.backends.row_bounds import FIELD_BYTES_MAX, read_rows
from gateway.settings.models import SettingsError

WIRE_BYTES_MAX = 8 * 1024 * 1024  # that a server may send for one question, whatever it was asked
GRACE_MS = 500  # for the server to end a query that is slow, which costs no connection
READ_ONLY = "-c default_transaction_read_only=on"  # before what the operator says, which may undo it
_READS = re.compile(r"\s*(select|with|values|table)\b", re.IGNORECASE)
_WRITES = re.compile(r"\b(insert|update|delete|merge|into)\b", re.IGNORECASE)


class PostgresDatabase:
    """One database.

    Args:
        dsn: Where it is, and as which role to ask: postgresql://user:password@host/database.
        timeout_ms: For one question.

    Raises:
        SettingsError: It cannot be meant.
    """

    def __init__(self, dsn: str, timeout_ms: int) -> None:
        seconds = max(2, -(-timeout_ms // 1000))  # libpq takes no less than two
        try:
            said = psycopg.conninfo.conninfo_to_dict(dsn)
        except psycopg.ProgrammingError as error:
            raise SettingsError("dsn: is not understood") from error  # what is wrong may have the password in it
        parts = (READ_ONLY, str(said.get("options") or ""), f"-c statement_timeout={timeout_ms}")
        options = " ".join(filter(None, parts))
        more: dict[str, str | int] = {
            "connect_timeout": seconds,
            "tcp_user_timeout": timeout_ms,
            "options": options,
            "application_name": str(said.get("application_name") or "lmq-gateway"),
        }
        self._dsn = psycopg.conninfo.make_conninfo(dsn, **more)
        self._own = threading.local()
        self._watch = AnswerWatch(timeout_ms + GRACE_MS, WIRE_BYTES_MAX)

    @staticmethod
    def placeholder(name: str) -> str:
        """Return how a named value stands in a query."""
        return f"%({name})s"

    @staticmethod
    def literal(text: str) -> str:
        """Return how the rest of a query is written."""
        return text.replace("%", "%%")

    def fetch(
        self, query: str, values: Mapping[str, str], rows_max: int
    ) -> tuple[list[str], Sequence[Sequence[object]]]:
        """Return the names of the columns and the first rows.

        Raises:
            BackendError: The database gives none.
        """
        was_open = self._connection() is not None
        try:
            return self._fetch(query, values, rows_max)
        except psycopg.OperationalError as error:
            self.leave()
            if not was_open:
                raise BackendError(_first_line(error)) from error
        except (psycopg.Error, BackendError) as error:
            self.leave()
            raise BackendError(_first_line(error)) from error
        try:  # the server may have gone away and come back since
            return self._fetch(query, values, rows_max)
        except (psycopg.Error, BackendError) as error:
            self.leave()
            raise BackendError(_first_line(error)) from error

    def _fetch(
        self, query: str, values: Mapping[str, str], rows_max: int
    ) -> tuple[list[str], Sequence[Sequence[object]]]:
        connection = self._connection()
        if connection is None:
            connection = self._own.connection = psycopg.connect(self._dsn, autocommit=True)
        with self._watch.watch(connection.fileno()) as watched:
            try:
                return _read(connection, query, values, rows_max)
            except psycopg.Error as error:
                if watched.why:
                    raise BackendError(watched.why) from error
                raise
            except UnicodeDecodeError as error:
                raise BackendError("it sent a value that is not text") from error

    def _connection(self) -> psycopg.Connection[tuple[object, ...]] | None:
        return getattr(self._own, "connection", None)

    def leave(self) -> None:
        """Close the connection of this thread."""
        known = self._own.__dict__.pop("connection", None)
        if known is not None:
            known.close()


def _read(
    connection: psycopg.Connection[tuple[object, ...]], query: str, values: Mapping[str, str], rows_max: int
) -> tuple[list[str], Sequence[Sequence[object]]]:
    with connection.cursor() as cursor:
        cursor.execute(bounded(query, rows_max).encode(), dict(values))
        if cursor.description is None:
            raise BackendError("the query gives no rows")
        return [column.name for column in cursor.description], read_rows(cursor.fetchone, rows_max)


def bounded(query: str, rows_max: int) -> str:
    """Return a query whose rows the server counts and measures: all that it sends is in memory before it is looked at.

    One that is too long is an error, which is not known before the row is. What may change data is left as it is.
    """
    if _READS.match(query) is None or _WRITES.search(query) is not None:
        return query
    size = "octet_length(lmq_row::text)"
    too_long = f"(({size})::text || ' bytes are more than a row may have')::integer = 0"
    where = f"WHERE CASE WHEN {size} > {FIELD_BYTES_MAX} THEN {too_long} ELSE true END LIMIT {rows_max}"
    inner = query.strip().rstrip(";")  # it may end with a comment
    return "\n".join(("SELECT lmq_row.* FROM (", inner, ") AS lmq_row", where))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__

"""Definitions: small tables of keys and values in one SQLite database, held in memory and committed in groups.

Source: docs/storage-format.md, "Definitions".
"""

from __future__ import annotations

import os
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from core.errors import DataFolderUnusableError, DiskFullError, FlushFailedError, StoreError
from core.parted import PartedMap
from core.row_format import FIRST, UNSAID, RowFormat
from core.store.disk import allocate, free_bytes

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_VERSION_COLUMN = f"version INTEGER NOT NULL DEFAULT {UNSAID}"
_ROW_COLUMNS = f"(key BLOB PRIMARY KEY, value BLOB NOT NULL, crc INTEGER NOT NULL, {_VERSION_COLUMN}) WITHOUT ROWID"

COVER_STEP_BYTES = 64 << 20  # so much of the log at most is to be read again at the start: a tenth of a second
ROOM_BYTES_MIN = 1 << 20  # what a commit of some changes takes at most; SQLite writes whole pages, and some besides
CHANGE_BYTES = 8 << 10  # a page of the database and one of its log, for each change that waits for its commit
ROW_BYTES = 64  # what a row has beside its key and value
FILL = 4  # a row takes its bytes in the database and in its log, in pages that may be half empty
NEARLY_FULL_BYTES = 1 << 30  # free, at a stop: others may take all of it before the next start
LOG_BYTES = 4 << 20  # some 1,000 pages, so many as SQLite's log has before it is copied back
SLICE_MAX = 1_000  # changes that a commit writes, or forgets, in one step: some milliseconds
_LOG_TABLE = "log"
_COVERED_KEY = b"covered_until"

Changes = dict[tuple[str, bytes], bytes | None]  # the newest value of each changed key; None: deleted


class Snapshot:
    """Changes on their way to disk, in slices: a later one may change the same key again."""

    def __init__(self, slices: list[Changes]) -> None:
        self.slices = slices
        self.is_done = not slices


class Table:
    """Keys and values under one name. All of it is in memory; changes are durable after a commit."""

    def __init__(self, name: str, rows: dict[bytes, bytes], definitions: Definitions) -> None:
        self.name = name
        self._rows = PartedMap(rows)
        self._definitions = definitions

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        return self._rows.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        if self._rows.get(key) != value:
            self._rows[key] = value
            self._definitions.note_change(self.name, key, value)

    def delete(self, key: bytes) -> None:
        """Remove a key, where it is there."""
        if self._rows.pop(key) is not None:
            self._definitions.note_change(self.name, key, None)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Give all keys with their values; the table must not change meanwhile."""
        return self._rows.items()

    def list_keys(self) -> list[bytes]:
        """Return all keys."""
        return self._rows.list_keys()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows


class Definitions:
    """The database. `begin_commit` and `commit` may run on another thread, one at a time; all else is the owner's."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._tables: dict[str, Table] = {}
        self._slices: list[Changes] = []  # one dict of a hundred thousand takes 10 ms to grow
        self._row_bytes = 0  # of what they put
        self._snapshot = Snapshot([])
        self._versions: dict[str, int] = {}  # of the rows of each table
        self._lacks_room = False  # the last commit found none; said by the thread that commits
        self._log_path = path.with_name(path.name + "-wal")
        self._file_bytes = 0  # of the database and its log, when the last commit began
        self._covered_until = self._kept_until = int.from_bytes(self._load(_LOG_TABLE).get(_COVERED_KEY, b""), "big")

    @classmethod
    def open(cls, path: Path) -> Definitions:
        """Open the database, or begin a new one.

        Raises:
            DataFolderUnusableError: It is damaged, not a database, or another program has it.
            DiskFullError: No room for a new one.
        """
        connection = None
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise _translate(error, path) from error
        if verdict != "ok":
            connection.close()
            raise DataFolderUnusableError(str(path), f"damaged database: {' '.join(str(verdict).split())}")
        try:
            return cls(path, connection)
        except StoreError:
            connection.close()
            raise

    def table(self, name: str, rows: RowFormat = FIRST) -> Table:
        """Return the table of that name (a-z, 0-9, _), made on first use; its rows are in the version of `rows`.

        Raises:
            DataFolderUnusableError: A row of it is damaged, or of a later version.
        """
        if not _NAME.fullmatch(name):
            raise ValueError("a table's name has lower-case letters, digits and _")
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = Table(name, self._load(name, rows), self)
        return table

    @property
    def dirty(self) -> bool:
        """Whether a change was not committed yet."""
        return bool(self._slices) or not self._snapshot.is_done

    def check_room(self, row_bytes: int = 0) -> None:
        """Check that what is changed now, rows of so many bytes if they are many, is likely to be kept soon.

        Raises:
            DiskFullError: There is no room for it, or a commit waits for room.
        """
        self.check_commits()
        if free_bytes(self.path.parent) < ROOM_BYTES_MIN + self._room_for_waiting() + FILL * row_bytes:
            raise DiskFullError(self.path.name)  # it is told to clients

    def check_commits(self) -> None:
        """Check that no commit waits for room: a change that needs no more, such as a deletion, is kept soon.

        Raises:
            DiskFullError: One waits.
        """
        if self._lacks_room:
            raise DiskFullError(self.path.name)

    def _room_for_waiting(self) -> int:
        """Return what the next commit takes at most: it writes each page of the database and of what is new once."""
        waiting = sum(map(len, self._slices)) * CHANGE_BYTES + FILL * self._row_bytes
        if waiting <= LOG_BYTES:
            return waiting
        return min(waiting, self._file_bytes + FILL * self._row_bytes)

    def note_change(self, name: str, key: bytes, value: bytes | None) -> None:
        """Queue a change for the next commit; called by the tables."""
        if not self._slices or len(self._slices[-1]) >= SLICE_MAX:
            self._slices.append({})
        self._slices[-1][name, key] = value
        self._row_bytes += ROW_BYTES + len(key) + len(value or b"")

    @property
    def covered_until(self) -> int:
        """The end of that part of the log whose records have made their changes, as `note_covered` said last.

        After `open`: as the last commit said; records after it may have been written by a process that was killed.
        """
        return self._covered_until

    def note_covered(self, until: int) -> None:
        """Say that all records of the log before `until` have made their changes; kept with the next commit."""
        self._covered_until = until

    def begin_commit(self) -> Snapshot:
        """Take the changes so far, and those of the commit before where it failed.

        May run on the thread that commits: a change goes into this snapshot or the next.
        """
        until = self._covered_until  # before the changes are taken, so that they are all there
        slices = self._slices
        self._slices = []
        self._row_bytes = 0  # what is added meanwhile may count or not
        if until != self._kept_until and (slices or not 0 < until - self._kept_until < COVER_STEP_BYTES):
            slices.append({(_LOG_TABLE, _COVERED_KEY): until.to_bytes(8, "big")})
            self._kept_until = until
        if not self._snapshot.is_done:
            slices = self._snapshot.slices + slices
        self._snapshot = Snapshot(slices)
        return self._snapshot

    def commit(self, snapshot: Snapshot) -> None:
        """Make a snapshot durable, whole or not at all.

        After an error the next commit tries these changes again.

        Raises:
            DiskFullError: No room.
            FlushFailedError: The disk refused.
            DataFolderUnusableError: The database refused.
        """
        for _ in self.commit_in_slices(snapshot):
            pass

    def commit_in_slices(self, snapshot: Snapshot) -> Iterator[None]:
        """Make a snapshot durable as `commit` does, a slice a step; it is when all steps were taken.

        Between two steps the thread can let others go on: also to forget a million changes takes long.
        """
        if snapshot.is_done:
            return
        self._keep_room()
        try:
            yield from self._write(snapshot.slices)
        except DiskFullError:
            self._rewind()
            try:
                yield from self._write(snapshot.slices)
            except DiskFullError:
                self._lacks_room = True
                raise
        snapshot.is_done = True
        self._lacks_room = False
        while snapshot.slices:
            snapshot.slices.pop()
            yield

    def _write(self, slices: list[Changes]) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for changes in slices:
                    for name, found in _by_table(changes.items()).items():
                        self._apply(name, found)
                    yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise _translate(error, self.path) from error

    def _keep_room(self) -> None:
        """Give the database's log its room ahead: what is deleted can be written down on a full disk then.

        SQLite writes the log anew from its beginning when all of it is in the database, and shortens it nowhere.
        """
        with suppress(DiskFullError, OSError):  # a commit may do without; the next one tries it again
            log_bytes = self._log_path.stat().st_size if self._log_path.exists() else LOG_BYTES
            self._file_bytes = self.path.stat().st_size + log_bytes
            if log_bytes < LOG_BYTES:
                fd = os.open(self._log_path, os.O_RDWR)  # SQLite has its locks on the other files
                try:
                    allocate(fd, self._log_path, log_bytes, LOG_BYTES)
                finally:
                    os.close(fd)

    def _rewind(self) -> None:
        """Have the database's log written from its beginning: first its changes go into the database itself."""
        with suppress(sqlite3.Error):  # the log is written on, then, and says whether it has room
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def let_go(self) -> None:
        """Let go of the database, without a commit."""
        self._connection.close()

    def close(self) -> None:
        """Commit what is left and let go of the database."""
        try:
            self.commit(self.begin_commit())
        finally:
            self._connection.close()
            self._leave_room()

    def _leave_room(self) -> None:
        """Keep the room of the database's log for the next start on a disk that is nearly full.

        SQLite deletes a log that is all in the database, and takes one of zeros for an empty one.
        """
        with suppress(DiskFullError, OSError):
            if free_bytes(self.path.parent) < NEARLY_FULL_BYTES and not self._log_path.exists():
                fd = os.open(self._log_path, os.O_RDWR | os.O_CREAT | os.O_EXCL, self.path.stat().st_mode & 0o777)
                try:
                    allocate(fd, self._log_path, 0, LOG_BYTES)
                finally:
                    os.close(fd)

    def _apply(self, name: str, changes: list[tuple[bytes, bytes | None]]) -> None:
        """Write the changes of one table; its name was checked against _NAME."""
        version = self._versions[name]
        self._connection.execute(f'CREATE TABLE IF NOT EXISTS "{name}" {_ROW_COLUMNS}')
        self._connection.executemany(
            f'DELETE FROM "{name}" WHERE key = ?',  # noqa: S608  # checked
            ((key,) for key, value in changes if value is None),
        )
        self._connection.executemany(
            f'INSERT OR REPLACE INTO "{name}" (key, value, crc, version) VALUES (?, ?, ?, ?)',  # noqa: S608  # checked
            ((key, value, _check_sum(key, value, version), version) for key, value in changes if value is not None),
        )

    def _load(self, name: str, form: RowFormat = FIRST) -> dict[bytes, bytes]:
        rows: dict[bytes, bytes] = {}
        self._versions[name] = form.version
        try:
            known = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
            if self._connection.execute(known, (name,)).fetchone() is None:
                return rows  # made by the first commit that changes it
            self._add_version_column(name)
            cursor = self._connection.execute(f'SELECT key, value, crc, version FROM "{name}"')  # noqa: S608  # checked
            for key, value, crc, version in cursor:
                self._check_row(name, key, value, crc, version)
                if version > form.version:
                    said = f"table {name} has rows of version {version}, this program reads them up to {form.version}"
                    raise DataFolderUnusableError(str(self.path), said)
                rows[key] = value
                if version < form.version:
                    rows[key] = form.upgrade(version, value)
                    self.note_change(name, key, rows[key])
        except sqlite3.Error as error:
            raise _translate(error, self.path) from error
        return rows

    def _add_version_column(self, name: str) -> None:
        """Give a table of a version before the column; its rows say then that they have no version."""
        columns = [row[1] for row in self._connection.execute(f'PRAGMA table_info("{name}")')]
        if "version" not in columns:
            self._connection.execute(f'ALTER TABLE "{name}" ADD COLUMN {_VERSION_COLUMN}')

    def _check_row(self, name: str, *row: object) -> None:
        match row:
            case (bytes() as key, bytes() as value, crc, int() as version) if 0 <= version < 1 << 31:
                is_sound = crc == _check_sum(key, value, version)
            case _:
                is_sound = False
        if not is_sound:
            raise DataFolderUnusableError(str(self.path), f"damaged row in table {name}")


def _by_table(
    changes: Iterable[tuple[tuple[str, bytes], bytes | None]],
) -> dict[str, list[tuple[bytes, bytes | None]]]:
    found: dict[str, list[tuple[bytes, bytes | None]]] = {}
    for (name, key), value in changes:
        found.setdefault(name, []).append((key, value))
    return found


def _check_sum(key: bytes, value: bytes, version: int) -> int:
    found = zlib.crc32(value, zlib.crc32(key))
    return found if version == UNSAID else zlib.crc32(version.to_bytes(4, "big"), found)


def _translate(error: sqlite3.Error, path: Path) -> StoreError:
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE:  # the latter: the index of its WAL
        return DiskFullError(str(path))
    if code == sqlite3.SQLITE_IOERR:
        return FlushFailedError(f"{path}: {error}")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return DataFolderUnusableError(str(path), f"damaged database: {error}")
    return DataFolderUnusableError(str(path), f"database: {error}")

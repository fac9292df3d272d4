"""What is on disk of a table of definitions."""

from __future__ import annotations

import sqlite3


def commit(definitions):
    definitions.commit(definitions.begin_commit())


def rows_on_disk(path, name):
    connection = sqlite3.connect(path)
    try:
        return dict(connection.execute(f'SELECT key, value FROM "{name}"'))
    finally:
        connection.close()

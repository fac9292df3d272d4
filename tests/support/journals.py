"""A journal as tests write it and read it."""

from __future__ import annotations

from core.store.journal import Journal


def write(path, records) -> int:
    journal = Journal.open(path)
    for record in records:
        journal.append(record)
    journal.close()
    return journal.bytes_used


def read(path) -> list[bytes]:
    journal = Journal.open(path)
    try:
        return list(journal.replay())
    finally:
        journal.close()


def compact(journal, records):
    journal.begin_compaction()
    for record in records:
        journal.append_compacted(record, len(record))
    journal.finish_compaction()

"""Which light queues a record is in, as the record itself and its dispatch set say."""

from __future__ import annotations

from collections.abc import Callable

from core.errors import CorruptRecordError
from core.message import StoredBatch
from core.properties import DISPATCH_SET, INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET, decode_properties
from core.store.dispatch_set import decode_set
from core.store.queue_reader import read_record

UNKNOWN = -1


def read_dispatch(record: bytes, copy_at: Callable[[int], bytes | None]) -> list[tuple[bytes, int]]:
    """Return each light queue of a record with the message's offset in it, UNKNOWN where only the queue tells.

    Nothing where the record is damaged, or its set is gone.

    Args:
        record: A copy of it.
        copy_at: Gives the record at a physical offset, None where none is served.

    Source: docs/storage-format.md, "Properties" and "Dispatch sets".
    """
    one = StoredBatch(1)
    if not read_record(record, one):
        return []
    properties = decode_properties(record[one.properties_start[0] : one.properties_end[0]])
    names = properties.get(INNER_MULTI_DISPATCH)
    try:
        if names is not None:
            offsets = [int(text) for text in properties.get(INNER_MULTI_QUEUE_OFFSET, b"").split(b",")]
            return list(zip(names.split(b","), offsets, strict=True))
        if DISPATCH_SET in properties:
            return _read_set(copy_at(int(properties[DISPATCH_SET])), one)
    except (ValueError, CorruptRecordError):
        return []
    return []


def _read_set(record: bytes | None, one: StoredBatch) -> list[tuple[bytes, int]]:
    if record is None or not read_record(record, one):
        return []
    names, _ = decode_set(record[one.body_start[0] : one.body_end[0]])
    return [(name, UNKNOWN) for name in names]

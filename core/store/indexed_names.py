"""Which light queues a message is in, by the sealed index of its segment: for where its own list is lost."""

from __future__ import annotations

from array import array
from pathlib import Path

from core.errors import CorruptRecordError
from core.store.dispatch_set import LMQ_PREFIX
from core.store.layout import INDEX_FOLDER, NAMES_FILE, segment_name
from core.store.queue_names import QueueNames
from core.store.sealed_index import SealedIndex


def names_by_index(data_dir: Path, base: int, position: int) -> list[bytes]:
    """Return the light queues that have an entry at `position` of the segment `base`, sorted.

    None are returned where the segment has no sealed index, or index or names are damaged.
    """
    folder = data_dir / INDEX_FOLDER
    path = folder / segment_name(base)
    if not path.exists() or not (folder / NAMES_FILE).exists():
        return []
    try:
        index = SealedIndex.open(path)
        names = QueueNames.open(folder / NAMES_FILE, writable=False)
    except (CorruptRecordError, OSError):
        return []
    try:
        fits = index.segment_base == base and index.names_count <= names.count
        if not fits or index.names_fingerprint != names.fingerprint(index.names_count):
            return []
        found = (names.key(ref) for ref in _refs_at(index, position))
        return sorted(name for name in found if name.startswith(LMQ_PREFIX))
    except CorruptRecordError:
        return []
    finally:
        names.close()
        index.close()


def _refs_at(index: SealedIndex, position: int) -> list[int]:
    refs: list[int] = []
    out = array("i")
    for ref, first, count in index.queues():
        if len(out) < count:
            out = array("i", bytes(4 * count))
        index.lookup(ref, first, count, out)
        if position in memoryview(out)[:count].tolist():
            refs.append(ref)
    return refs

"""What to say of a log that lacks what was on disk before, and whether to go on."""

from __future__ import annotations

import logging
from pathlib import Path

from core.errors import CorruptRecordError, DataFolderUnusableError
from core.store.layout import COMMIT_LOG_FOLDER, INDEX_FOLDER, NAMES_FILE, NEXT_OFFSETS_FILE, segment_paths
from core.store.log_check import LogCheck
from core.store.log_survey import Stretch
from core.store.next_offsets import read_next_offsets
from core.store.queue_names import QueueNames
from core.store.sealed_index import SealedIndex

LOGGER = logging.getLogger(__name__)
_QUEUES_NAMED = 10  # in one line of the log, which tells how many there are besides
_ADVICE = "put the files back, or go on without them by store.accept_loss = true: then no offset is given twice"


def tell_losses(data_dir: Path, check: LogCheck, *, is_accepted: bool) -> None:
    """Say what is missing, as a warning where it is accepted.

    Raises:
        DataFolderUnusableError: Something is missing that was on disk, and that is not accepted.
    """
    if not check.losses:
        if is_accepted:
            LOGGER.warning(
                "store.accept_loss is set, and nothing is missing: unset it, or the next loss is accepted too"
            )
        if check.holes:
            LOGGER.warning("a power cut left holes in data that was not synced: %s", "; ".join(map(str, check.holes)))
        return
    lost_bytes = sum(loss.end - loss.start for loss in check.losses)
    lines = [f"the log lacks {lost_bytes} bytes that were on disk before"]
    lines += [f"{loss}, {loss.end - loss.start} bytes" for loss in check.losses]
    lines.append(_describe_queues(data_dir / INDEX_FOLDER, check.losses))
    if not is_accepted:
        raise DataFolderUnusableError(str(data_dir / COMMIT_LOG_FOLDER), "\n  ".join([*lines, _ADVICE]))
    for line in lines:
        LOGGER.warning("store.accept_loss: %s", line)


def _describe_queues(folder: Path, losses: list[Stretch]) -> str:
    """Return a line of which queues are known to have had messages in what is missing."""
    ends = _known_ends(folder, losses)
    if not ends:
        return "no index tells which queues had messages there"
    named = sorted(ends.items())[:_QUEUES_NAMED]
    text = ", ".join(f"{key.decode('utf-8', 'backslashreplace')} {end}" for key, end in named)
    more = f", and {len(ends) - len(named)} queues more" if len(ends) > len(named) else ""
    return f"queues that had messages there, with the next offset that each is known to have come to: {text}{more}"


def _known_ends(folder: Path, losses: list[Stretch]) -> dict[bytes, int]:
    try:
        names = QueueNames.open(folder / NAMES_FILE, writable=False)
    except (CorruptRecordError, OSError):
        return {}
    ends: dict[bytes, int] = {}
    for base, path in segment_paths(folder):
        if any(loss.start <= base < loss.end for loss in losses):
            _read_ends(path, names, ends)
    offsets = read_next_offsets(folder / NEXT_OFFSETS_FILE)
    if (
        losses[0].start == 0
        and offsets is not None
        and offsets.names_count <= names.count
        and offsets.names_fingerprint == names.fingerprint(offsets.names_count)
    ):
        for ref, end in enumerate(offsets.offsets):
            if end:
                ends[names.key(ref)] = max(end, ends.get(names.key(ref), 0))
    names.close()
    return ends


def _read_ends(path: Path, names: QueueNames, ends: dict[bytes, int]) -> None:
    """Take in the index of a segment that is missing."""
    try:
        index = SealedIndex.open(path)
    except (CorruptRecordError, OSError):
        return
    if index.names_count <= names.count and index.names_fingerprint == names.fingerprint(index.names_count):
        for ref, first, count in index.queues():
            ends[names.key(ref)] = max(first + count, ends.get(names.key(ref), 0))
    index.close()

"""A data folder's log at the start: looked at, mended where that is wanted, synced, recovered."""

from __future__ import annotations

import logging
from pathlib import Path

from core.errors import DataFolderUnusableError
from core.settings import StoreSettings
from core.store.disk import sync_folder
from core.store.layout import COMMIT_LOG_FOLDER, CONFIRMED_FILE, INDEX_FOLDER, KEYS_FOLDER
from core.store.log_check import check_log
from core.store.losses import tell_losses
from core.store.recovery import Recovered, recover
from core.store.segments import Segments
from core.store.torn_unit import cut_torn_unit

LOGGER = logging.getLogger(__name__)

DEFINITIONS = "definitions.db"
FOLDERS = (COMMIT_LOG_FOLDER, INDEX_FOLDER, KEYS_FOLDER, "places", "journals")


def find_definitions(data_dir: Path, settings: StoreSettings) -> Path:
    """Return where a folder's definitions are, or are to be.

    Raises:
        DataFolderUnusableError: They are gone, and there is a log. No queue or session would need its messages, so that
            retention would let all of them go.
    """
    path = data_dir / DEFINITIONS
    is_of_a_gateway = (data_dir / CONFIRMED_FILE).exists()  # else a log was put into an empty folder
    if path.exists() or not is_of_a_gateway or not any((data_dir / COMMIT_LOG_FOLDER).glob("[0-9]*")):
        return path
    lost = "is missing, and there is a log: without it no queue, session or user is known, and no message is needed"
    if not settings.accept_loss:
        said = f"{lost}; put it back, or go on without it by store.accept_loss = true"
        raise DataFolderUnusableError(str(path), said)
    LOGGER.warning("store.accept_loss: %s %s", path, lost)
    return path


def open_log(data_dir: Path, settings: StoreSettings, covered_until: int) -> tuple[Segments, Recovered]:
    """Open the log of a folder and its indexes; what a process before left unsynced is on disk when this returns.

    Args:
        data_dir: The data folder, which is locked.
        settings: The store's.
        covered_until: So far the log was on disk by what the tables say.

    Raises:
        DataFolderUnusableError: The log lacks what was on disk, or a file cannot be opened.
        DiskFullError: No room for what recovery must write.
        FlushFailedError: The disk refused.
    """
    check = check_log(data_dir, covered_until or -1)
    tell_losses(data_dir, check, is_accepted=settings.accept_loss)
    for name in FOLDERS:
        (data_dir / name).mkdir(exist_ok=True)
    sync_folder(data_dir)
    segments = Segments(data_dir / COMMIT_LOG_FOLDER, data_dir, settings.segment_bytes, settings.segments_mapped_max)
    segments.sync_from(check.known_end)
    if not check.losses:
        cut_torn_unit(segments, data_dir, check.known_end)
    return segments, recover(segments, data_dir / INDEX_FOLDER, check)

"""A data folder's log at the start: looked at, mended where that is wanted, synced, recovered."""

from __future__ import annotations

from pathlib import Path

from core.settings import StoreSettings
from core.store.disk import sync_folder
from core.store.layout import COMMIT_LOG_FOLDER, INDEX_FOLDER
from core.store.log_check import check_log
from core.store.losses import tell_losses
from core.store.recovery import Recovered, recover
from core.store.segments import Segments

FOLDERS = (COMMIT_LOG_FOLDER, INDEX_FOLDER, "places", "journals")


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
    return segments, recover(segments, data_dir / INDEX_FOLDER, check)

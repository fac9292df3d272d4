"""The files of a data folder that others keep their own state in: places and journals, opened by name on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from core.errors import DataFolderUnusableError
from core.store.journal import Journal
from core.store.places import Places

F = TypeVar("F", Journal, Places)


class Closable(Protocol):
    """A part that holds a file."""

    def close(self) -> None:
        """Let go of it."""


class SideFiles:
    """All places and journals that were asked for, to be synced and closed together."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._places: dict[str, Places] = {}
        self._journals: dict[str, Journal] = {}

    def places(self, name: str) -> Places:
        """Return the file of places `name`.

        Raises:
            DataFolderUnusableError: It cannot be opened, or is no such file.
            DiskFullError: No room for a new one.
        """
        return _open_once(self._places, name, Places.open, self._data_dir / "places" / name)

    def journal(self, name: str) -> Journal:
        """Return the journal `name`.

        Raises:
            DataFolderUnusableError: It cannot be opened, or is another journal.
            DiskFullError: No room for a new one.
        """
        return _open_once(self._journals, name, Journal.open, self._data_dir / "journals" / name)

    @property
    def dirty(self) -> bool:
        """Whether anything was stored in any of them that no sync has covered yet."""
        return any(one.dirty for one in self._places.values()) or any(one.dirty for one in self._journals.values())

    def all(self) -> list[Journal | Places]:
        """Return all of them, journals first: what places say is said of what journals hold."""
        return [*self._journals.values(), *self._places.values()]

    def damage(self) -> dict[str, int]:
        """Return how many places failed their check, and how many journals were not as they were written at open."""
        return {
            "place": sum(places.damaged_count for places in self._places.values()),
            "journal": sum(journal.is_damaged for journal in self._journals.values()),
        }


def _open_once(opened: dict[str, F], name: str, open_file: Callable[[Path], F], path: Path) -> F:
    if name not in opened:
        try:
            opened[name] = open_file(path)
        except OSError as error:
            raise unusable(path, error) from error
    return opened[name]


def unusable(path: Path, error: OSError) -> DataFolderUnusableError:
    """Return what to tell of a file that the system refuses: the file's own name, where the system says it."""
    return DataFolderUnusableError(str(error.filename or path), error.strerror or str(error))

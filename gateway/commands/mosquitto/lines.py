"""Lines of Mosquitto's files, and what is said about those that become no setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class MosquittoFileError(Exception):
    """A file cannot be read, or says what cannot be taken over as a whole."""


class Line(NamedTuple):
    """One line that is neither empty nor a comment."""

    place: str  # for what is said about it: the file's name and the number of the line
    word: str  # the first one
    rest: str  # without blanks around it


def read_text(path: Path) -> str:
    """Return what is in a file.

    Raises:
        MosquittoFileError: It is not there, may not be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MosquittoFileError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MosquittoFileError(f"cannot read {path}: it is not UTF-8") from error


def split_lines(text: str, name: str) -> Iterator[Line]:
    """Yield the lines of a configuration or ACL file, which begin with a word. `name` is the file's."""
    for number, line in enumerate(text.splitlines(), 1):
        word, _, rest = line.strip().partition(" ")
        if word and not word.startswith("#"):
            yield Line(f"{name}:{number}", word, rest.strip())

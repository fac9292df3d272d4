"""Lines of Mosquitto's files, and what is said about those that become no setting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_BOOLS = {"true": True, "1": True, "false": False, "0": False}


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


def read_bool(line: Line) -> bool:
    """Return what a line says that is true or false; Mosquitto looks at no more than its first word.

    Raises:
        MosquittoFileError: It says neither.
    """
    said = line.rest.partition(" ")[0]
    if said not in _BOOLS:
        raise MosquittoFileError(f"{line.place}: {line.word} {line.rest}: must be true or false")
    return _BOOLS[said]


def find_path(name: str, folder: Path) -> Path:
    """Return where a file is that a configuration in `folder` names: where Mosquitto looks, or else beside it."""
    path = Path(name)
    return path if path.is_absolute() or path.exists() else folder / path


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a mosquitto.conf, those of the files of an `include_dir` in its place, in their names' order.

    Raises:
        MosquittoFileError: One of them cannot be read.
    """
    for line in split_lines(read_text(path), path.name):
        if line.word != "include_dir":
            yield line
            continue
        folder = find_path(line.rest, path.parent)
        if not folder.is_dir():
            raise MosquittoFileError(f"{line.place}: include_dir {line.rest}: no such folder")
        for each in sorted(folder.glob("?*.conf")):
            yield from split_lines(read_text(each), f"{folder.name}/{each.name}")


def split_lines(text: str, name: str) -> Iterator[Line]:
    """Yield the lines of a configuration or ACL file, which begin with a word. `name` is the file's."""
    for number, line in enumerate(text.splitlines(), 1):
        word, _, rest = line.strip().partition(" ")
        if word and not word.startswith("#"):
            yield Line(f"{name}:{number}", word, rest.strip())

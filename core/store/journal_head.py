"""What stands before the records of a journal: whose journal it is, and how far the last compaction's records go.

Source: docs/storage-format.md, "Journals".
"""

from __future__ import annotations

import logging
import struct
from pathlib import Path
from typing import NamedTuple

from core import octets
from core.errors import DataFolderUnusableError
from core.store.disk import replace_file

LOGGER = logging.getLogger(__name__)

_MAGIC = b"LMQJOURN"
_VERSION = 2
# magic, version, generation, end of the records of the last compaction, name, CRC of these, seed of the records' CRCs
_HEAD = struct.Struct(">8sIQQ28sI4s")
HEAD_BYTES = 64  # as _HEAD has it
SEED = b"SEED"
SEED_BYTES = 4  # as many as a CRC-32 has
NAME_BYTES_MAX = 28  # what the other fields leave of the head
_CRC_AT = 56
_OLD_VERSION = 1
_OLD_HEAD = struct.Struct(">8sIQQI4s")  # without the name
_OLD_HEAD_BYTES = 36  # as _OLD_HEAD has it
_OLD_CRC_AT = 28


class JournalHead(NamedTuple):
    """Which journal it is, how many compactions there were, and where the records of the last one end."""

    name: str
    number: int
    compacted_end: int


def pack_head(head: JournalHead) -> bytes:
    """Return the bytes of a head.

    Raises:
        ValueError: The name has more than 28 bytes.
    """
    name = head.name.encode()
    if len(name) > NAME_BYTES_MAX:
        raise ValueError("a journal's name has at most 28 bytes")
    packed = _HEAD.pack(_MAGIC, _VERSION, head.number, head.compacted_end, name, 0, SEED)
    return packed[:_CRC_AT] + _crc(packed[:_CRC_AT]).to_bytes(4, "big") + SEED


def _crc(data: bytes | memoryview) -> int:
    return octets.crc32(data, 0, len(data))


def read_head(data: bytes | memoryview, path: Path) -> JournalHead | None:
    """Return the head that the journal at `path` starts with, or None where it has no sound one.

    Raises:
        DataFolderUnusableError: It is another journal, or of a version that this program does not know.
    """
    if len(data) < HEAD_BYTES:
        return None
    magic, version, number, compacted_end, name, crc, seed = _HEAD.unpack_from(data)
    if magic != _MAGIC or crc != _crc(data[:_CRC_AT]):
        return None
    if version != _VERSION:
        raise DataFolderUnusableError(str(path), f"a journal of version {version}, this program reads {_VERSION}")
    head = JournalHead(name.rstrip(b"\0").decode(errors="replace"), number, compacted_end)
    if head.name != journal_name(path):
        raise DataFolderUnusableError(str(path), f"it is the journal {head.name!r}, not {journal_name(path)!r}")
    return head if seed == SEED else None


def journal_name(path: Path) -> str:
    """Return the name of the journal of which `path` is one file."""
    return path.name.partition(".")[0]


def convert_old(path: Path) -> None:
    """Let a journal of version 1, which does not say whose it is, be one of this version; else do nothing.

    Raises:
        DiskFullError: No room for the new file.
    """
    with path.open("rb") as file:
        front = file.read(_OLD_HEAD_BYTES)
        if len(front) < _OLD_HEAD_BYTES:
            return
        magic, version, number, compacted_end, crc, seed = _OLD_HEAD.unpack(front)
        is_old = (magic, version, seed) == (_MAGIC, _OLD_VERSION, SEED) and crc == _crc(front[:_OLD_CRC_AT])
        if not is_old:
            return
        records = file.read()
    head = JournalHead(journal_name(path), number, compacted_end + HEAD_BYTES - _OLD_HEAD_BYTES)
    replace_file(path, pack_head(head) + records)
    LOGGER.info("journal is of version 2 from now on path=%s", path)

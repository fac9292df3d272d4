"""An immutable file that is mapped and checked as it is read: a header with a CRC, and blocks with a CRC each.

A header begins with its format's magic and version, and ends with the CRC of all before it. All numbers are
little-endian, so that they are used where they lie.

Source: docs/storage-format.md, "Sealed index" and "Keys".
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from core import octets
from core.errors import CorruptRecordError
from core.store.mapped_file import map_read_only

BLOCK_BYTES = 4_096  # a page: checking it reads no other one in
_BLOCK_BYTES = BLOCK_BYTES
_CRC_BYTES = 4  # CRC-32
EMPTY = memoryview(bytes(8))  # in place of a part that is not there


class FileFormat:
    """What files of one kind begin with.

    Args:
        name: What errors call them.
        magic: The first eight bytes.
        version: The only one that is read.
        fields: Letters of the header's further fields, as `struct` has them.
    """

    def __init__(self, name: str, magic: bytes, version: int, fields: str) -> None:
        self.name = name
        self.magic = magic
        self.version = version
        self._header = struct.Struct(f"<8sI{fields}I")
        self.header_bytes = self._header.size

    def pack(self, *fields: object) -> bytes:
        """Return the header of a file."""
        header = self._header.pack(self.magic, self.version, *fields, 0)[:-_CRC_BYTES]
        return header + zlib.crc32(header).to_bytes(_CRC_BYTES, "little")

    def unpack(self, file: CheckedFile) -> tuple[int, ...]:
        """Return the further fields of a file's header.

        Raises:
            CorruptRecordError: It is no header of this format and version.
        """
        magic, version, *fields, crc = self._header.unpack_from(file.map)
        file.check((magic, version) == (self.magic, self.version), "not one of this version")
        file.check(zlib.crc32(file.map[: self.header_bytes - _CRC_BYTES]) == crc, "damaged header")
        return tuple(fields)


class CheckedFile:
    """One such file, open; what it holds is its subclass's to read.

    A subclass fills `block_crcs`, and `is_checked` with a byte for each of them.

    Args:
        path: The file.
        kind: Its format.

    Raises:
        CorruptRecordError: It is too short to be one.
    """

    def __init__(self, path: Path, kind: FileFormat) -> None:
        self.path = path
        self.kind = kind
        self.segment_base = 0
        self.block_crcs = EMPTY.cast("I")
        self.is_checked = bytearray(1)
        with path.open("rb") as file:
            self.size = file.seek(0, 2)
            self.check(self.size >= kind.header_bytes, "too short")
            self.map = map_read_only(file.fileno(), self.size)

    def check(self, holds: bool, reason: str) -> None:  # noqa: FBT001  # reads like an assertion
        """Raise CorruptRecordError where the file is not as it was written."""
        if not holds:
            raise CorruptRecordError(self.segment_base, f"{self.kind.name} {self.path.name}: {reason}")

    def check_block(self, number: int, data: memoryview, at: int) -> None:
        """Check the block of `data` that begins at `at`, whose CRC is the `number`th, unless that was done before.

        Raises:
            CorruptRecordError: It is damaged.
        """
        if not self.is_checked[number]:
            crc = octets.crc32(data, at, min(at + _BLOCK_BYTES, len(data)))
            self.check(crc == self.block_crcs[number], "damaged block")
            self.is_checked[number] = 1

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        self.block_crcs = EMPTY.cast("I")
        self.map = EMPTY

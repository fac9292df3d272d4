"""The next offset of every queue, at one position of the log: what outlives all of a queue's records.

The file is replaced whole. The one before it is kept, and used where the newest is damaged.

Source: docs/storage-format.md, "Next offsets".
"""

from __future__ import annotations

import struct
import zlib
from array import array
from pathlib import Path

from core.store.disk import new_file, write_all
from core.store.head_index import HeadIndex

_MAGIC = b"LMQNEXTS"
_VERSION = 1
# magic, version, fingerprint of the names, log position, names covered, CRC of the offsets, CRC of all before it
_HEADER = struct.Struct("<8sIIQIII4x")
_CRC_AT = 32
_CRC = struct.Struct("<I")
_SLICE_QUEUES = 65_536  # 512 KiB in one write


class NextOffsets:
    """The next offset of each of the first `names_count` queues when the log ended at `log_position`."""

    def __init__(self, names_count: int, names_fingerprint: int, log_position: int, offsets: array[int]) -> None:
        self.names_count = names_count
        self.names_fingerprint = names_fingerprint
        self.log_position = log_position
        self.offsets = offsets

    def apply(self, head: HeadIndex) -> None:
        """Set them in an index that has no entries yet."""
        head.ensure(self.names_count)
        for ref, offset in enumerate(self.offsets):
            if offset:
                head.set_next_offset(ref, offset)


def _previous(path: Path) -> Path:
    return path.with_name(path.name + ".previous")


def write_next_offsets(
    path: Path, head: HeadIndex, names_count: int, names_fingerprint: int, log_position: int
) -> None:
    """Write the next offsets as `head` has them, synced and in one step; may run on another thread.

    Args:
        path: The file to replace.
        head: A live index, or what `detach` gave; no further queues than `names_count` are written.
        names_count: Names of queues that are durable already.
        names_fingerprint: Their fingerprint.
        log_position: Where the log went on when `head` was as it is.

    Raises:
        DiskFullError: No room; nothing has changed.
        FlushFailedError: The disk refused; nothing has changed.
    """
    part = array("q", bytes(8 * _SLICE_QUEUES))
    with new_file(path, keep=_previous(path)) as fd:
        crc = 0
        for start in range(0, names_count, _SLICE_QUEUES):
            size = min(names_count - start, _SLICE_QUEUES)
            known = head.export_next_offsets(start, part)
            for index in range(known, size):
                part[index] = 0
            data = memoryview(part).cast("B")[: 8 * size]
            crc = zlib.crc32(data, crc)
            write_all(fd, path, data, _HEADER.size + 8 * start)
        header = _HEADER.pack(_MAGIC, _VERSION, names_fingerprint, log_position, names_count, crc, 0)
        header = header[:_CRC_AT] + _CRC.pack(zlib.crc32(header[:_CRC_AT])) + bytes(4)
        write_all(fd, path, header, 0)


def read_next_offsets(path: Path) -> NextOffsets | None:
    """Return what was written last, or before that where the last is damaged; None where there is neither."""
    return _read(path) or _read(_previous(path))


def _read(path: Path) -> NextOffsets | None:
    if not path.exists():
        return None
    data = path.read_bytes()
    if len(data) < _HEADER.size or _CRC.unpack_from(data, _CRC_AT)[0] != zlib.crc32(data[:_CRC_AT]):
        return None
    magic, version, fingerprint, log_position, names_count, crc, _ = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if (magic, version, len(body), crc) != (_MAGIC, _VERSION, 8 * names_count, zlib.crc32(body)):
        return None
    return NextOffsets(names_count, fingerprint, log_position, array("q", body.tobytes()))

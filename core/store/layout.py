"""Byte layout of the commit log: what several modules know of a record, and how files are named.

All integers are big-endian. Source: docs/storage-format.md.
"""

from __future__ import annotations

from pathlib import Path

# A record. Hosts are 8 bytes (IPv4) or 20 (IPv6): what comes after one moves by 12 where it is longer.
MAGIC_V1 = 0xDAA320A7  # topic length in one byte
MAGIC_V2 = 0xDAA320AB  # topic length in two bytes: topics over 127 bytes
MAGIC_BLANK = 0xCBD43194  # the rest of the segment holds nothing
TOPIC_V1_BYTES_MAX = 127  # a longer topic needs the second version of RocketMQ's record
PHYSICAL_OFFSET_AT = 28
STORE_MS_AT = 56  # + 12 with an IPv6 born host
RECORD_BYTES_MIN = 91  # no body, topic or properties
BLANK_BYTES = 8  # size and magic; a record leaves at least as much behind it in its segment

DEFAULT_STORE_HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"  # 127.0.0.1:10911, until it is known where we are
HOST_V4_BYTES = 8  # address 4, port 4
HOST_V6_BYTES = 20  # address 16, port 4
SYS_BORN_V6 = 0x10
SYS_STORE_V6 = 0x20
SYS_FLAG_AT = 36
SYS_NOT_DISPATCHED = 0x4  # set in prepared (0x4) and rolled back (0xC): such records are in no queue

# Records that a crash leaves all of or none, a unit, say so in the upper half of sysFlag: 0 are those of no unit.
UNIT_SHIFT = 16
UNIT_BEGINS = 1
UNIT_GOES_ON = 2
UNIT_ENDS = 3

CRC_PROPERTY_BYTES = 20  # `__CRC32#` 0x01, ten digits with the lowest first, 0x02

GAP_MARK = 0x4C4D512047415021  # their prepared offset, "LMQ GAP!": no producer chooses that field, others have 0 there
GAP_MARK_AT = 76  # their hosts are IPv4
GAP_BODY_AT = 88

COMMIT_LOG_FOLDER = "commitlog"
INDEX_FOLDER = "index"
KEYS_FOLDER = "keys"
NAMES_FILE = "queues"  # in the index folder, as is the next
NEXT_OFFSETS_FILE = "offsets"
NEXT_SEGMENT_FILE = "segment.next"  # and a number: prepared ahead, outside the log until it is needed
GAPS_SUFFIX = ".gaps"  # in the index folder, after a segment's name: what is being punched out of it
CONFIRMED_FILE = "confirmed"
SEGMENT_NAME_DIGITS = 20  # as RocketMQ names its files; no offset of 64 bits has more
PAGE_BYTES = 4096  # of x86-64's memory and of usual file systems: what holes are cut to


def segment_name(base: int) -> str:
    """Return the file name of the segment that starts at physical offset `base`."""
    return f"{base:0{SEGMENT_NAME_DIGITS}d}"


def segment_paths(folder: Path) -> list[tuple[int, Path]]:
    """Return the segments in `folder`, in order: each one's base and path. Other files are left out."""
    names = [path for path in folder.iterdir() if len(path.name) == SEGMENT_NAME_DIGITS and path.name.isdecimal()]
    return sorted((int(path.name), path) for path in names)

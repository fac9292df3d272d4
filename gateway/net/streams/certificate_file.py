"""When a certificate expires, which the standard library tells only of a peer's.

Source: RFC 5280, 4.1; X.690.
"""

from __future__ import annotations

import calendar
import ssl
from pathlib import Path

BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
VERSION_TAG, UTC_TIME, GENERALIZED_TIME = 0xA0, 0x17, 0x18
BEFORE_VALIDITY = 3  # number, algorithm, issuer
CENTURY_TURNS = 50  # of a year in two digits: 49 is 2049, 50 is 1950


def expires_at_s(path: Path) -> int:
    """Return when the first certificate of a PEM file expires, in seconds since 1970.

    Raises:
        ValueError: There is none, or it is malformed.
        OSError: The file cannot be read.
    """
    text = path.read_text(encoding="ascii", errors="replace")
    begin = text.find(BEGIN)
    end = text.find(END, begin)
    if begin < 0 or end < 0:
        raise ValueError("no certificate")
    der = ssl.PEM_cert_to_DER_cert(text[begin : end + len(END)])
    try:
        return _not_after_s(der)
    except IndexError as error:
        raise ValueError("malformed certificate") from error


def _not_after_s(der: bytes) -> int:
    _, pos, _ = _read(der, 0)  # the certificate
    _, pos, _ = _read(der, pos)  # what is signed of it
    tag, _, after = _read(der, pos)
    if tag == VERSION_TAG:
        pos = after
    for _ in range(BEFORE_VALIDITY):
        _, _, pos = _read(der, pos)
    _, pos, _ = _read(der, pos)
    _, _, pos = _read(der, pos)  # from when on it is valid
    tag, begin, end = _read(der, pos)
    return _seconds(tag, der[begin:end].decode("ascii"))


def _read(der: bytes, pos: int) -> tuple[int, int, int]:
    """Return the tag of what stands at `pos`, and where its content begins and ends."""
    size, begin = der[pos + 1], pos + 2
    if size & 0x80:
        count = size & 0x7F
        size, begin = int.from_bytes(der[begin : begin + count]), begin + count
    return der[pos], begin, begin + size


def _seconds(tag: int, text: str) -> int:
    if tag == UTC_TIME:
        text = ("20" if int(text[:2]) < CENTURY_TURNS else "19") + text
    elif tag != GENERALIZED_TIME:
        raise ValueError("malformed certificate")
    parts = (text[0:4], text[4:6], text[6:8], text[8:10], text[10:12], text[12:14])
    return calendar.timegm(tuple(map(int, parts)))

"""What a certificate in a file says of itself, which the standard library tells only of a peer's.

Source: RFC 5280, 4.1 and 4.2.1.6; X.690.
"""

from __future__ import annotations

import calendar
import ssl
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
VERSION_TAG, EXTENSIONS_TAG, UTC_TIME, GENERALIZED_TIME = 0xA0, 0xA3, 0x17, 0x18
DNS_TAG, ADDRESS_TAG = 0x82, 0x87  # of names in a subjectAltName
BEFORE_VALIDITY = 3  # number, algorithm, issuer
CENTURY_TURNS = 50  # of a year in two digits: 49 is 2049, 50 is 1950
OTHER_NAMES = bytes.fromhex("551d11")  # subjectAltName, 2.5.29.17
COMMON_NAME = bytes.fromhex("550403")
_DAY_S = 86_400
WARN_S = 14 * _DAY_S  # before the end; of one that is valid for a short time, its last third


class Certificate(NamedTuple):
    """A server's certificate: the hosts that it is for, and when it is valid, in seconds since 1970.

    `names` are host names in lower case, the first label perhaps `*`, and addresses; of a certificate that has none in
    its subjectAltName, its common name.
    """

    path: Path
    names: tuple[str, ...]
    begins_at_s: int
    expires_at_s: int

    def ends_soon(self, now_s: float) -> bool:
        """Return whether it has to be replaced now: it expires soon, or has expired."""
        return self.expires_at_s - now_s <= min(WARN_S, (self.expires_at_s - self.begins_at_s) // 3)

    def tell_end(self, now_s: float) -> str:
        """Return when it expires, in words."""
        if self.expires_at_s <= now_s:
            return "has expired"
        days = int(self.expires_at_s - now_s) // _DAY_S
        return "expires within a day" if not days else f"expires in {days} day{'s' if days > 1 else ''}"

    def is_for(self, host: str) -> bool:
        """Return whether it is for a host, whose name is in lower case."""
        _, dot, rest = host.partition(".")
        return host in self.names or (dot != "" and f"*.{rest}" in self.names)


def read_certificate(path: Path) -> Certificate:
    """Return the first certificate of a PEM file.

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
        return Certificate(path, *_parse(der))
    except IndexError as error:
        raise ValueError("malformed certificate") from error


def _parse(der: bytes) -> tuple[tuple[str, ...], int, int]:
    """Return the names, and from when until when it is valid."""
    _, pos, _ = _read(der, 0)  # the certificate
    _, pos, signed_end = _read(der, pos)  # what is signed of it
    tag, _, after = _read(der, pos)
    if tag == VERSION_TAG:
        pos = after
    for _ in range(BEFORE_VALIDITY):
        _, _, pos = _read(der, pos)
    _, begin, subject = _read(der, pos)
    tag, first, end = _read(der, begin)
    begins_at_s = _seconds(tag, der[first:end].decode("ascii"))
    tag, first, end = _read(der, end)
    expires_at_s = _seconds(tag, der[first:end].decode("ascii"))
    names = _find_other_names(der, subject, signed_end) or _find_common_name(der, subject)
    return names, begins_at_s, expires_at_s


def _find_other_names(der: bytes, pos: int, end: int) -> tuple[str, ...]:
    """Return the hosts in the subjectAltName; `pos` is where the subject stands, `end` where all of it ends."""
    for tag, begin, _ in _each(der, pos, end):
        if tag == EXTENSIONS_TAG:
            _, first, last = _read(der, begin)
            for _, extension, extension_end in _each(der, first, last):
                _, name, name_end = _read(der, extension)
                if der[name:name_end] == OTHER_NAMES:
                    return _hosts(der, name_end, extension_end)
    return ()


def _hosts(der: bytes, pos: int, end: int) -> tuple[str, ...]:
    """Return those of an extension, whose value is the last thing before `end`."""
    *_, (_, value, _) = _each(der, pos, end)
    _, first, last = _read(der, value)
    return tuple(filter(None, (_host(tag, der[begin:after]) for tag, begin, after in _each(der, first, last))))


def _find_common_name(der: bytes, pos: int) -> tuple[str, ...]:
    _, begin, end = _read(der, pos)
    for _, first, last in _each(der, begin, end):
        for _, pair, _ in _each(der, first, last):
            _, name, name_end = _read(der, pair)
            if der[name:name_end] == COMMON_NAME:
                _, text, text_end = _read(der, name_end)
                return (der[text:text_end].decode(errors="replace").lower(),)
    return ()


def _host(tag: int, value: bytes) -> str:
    if tag == DNS_TAG:
        return value.decode("ascii", errors="replace").lower()
    return str(ip_address(value)) if tag == ADDRESS_TAG else ""


def _each(der: bytes, pos: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield what `_read` returns of each thing from `pos` to `end`."""
    while pos < end:
        tag, begin, after = _read(der, pos)
        yield tag, begin, after
        pos = after


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

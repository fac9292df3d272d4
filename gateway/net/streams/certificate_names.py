"""Reads a client's name from its certificate, from one of the fields that certificates have for names.

Source: RFC 5280, 4.1.2.6 and 4.2.1.6; RFC 4514 for a whole subject as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateway.settings.listen import NameSource

OTHER_NAMES: dict[str, str] = {"email": "email", "dns": "DNS", "uri": "URI"}  # in a subjectAltName
SHORT = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "stateOrProvinceName": "ST",
    "localityName": "L",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
ESCAPED = frozenset(',+"\\<>;')


def find_name(certificate: Mapping[str, object], source: NameSource) -> str:
    """Return the first name of a kind in a certificate, as `getpeercert` gives it; empty where there is none."""
    if source == "common_name":
        return next((value for name, value in _subject(certificate) if name == "commonName"), "")
    if source == "subject":
        parts = [f"{SHORT.get(name, name)}={_escape(value)}" for name, value in _subject(certificate)]
        return ",".join(reversed(parts))
    kind = OTHER_NAMES[source]
    return next((value for name, value in _pairs(certificate.get("subjectAltName")) if name == kind), "")


def _subject(certificate: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    found = certificate.get("subject")
    for part in found if isinstance(found, tuple) else ():
        yield from _pairs(part)


def _pairs(found: object) -> Iterator[tuple[str, str]]:
    for pair in found if isinstance(found, tuple) else ():
        name, value = pair
        yield str(name), str(value)


def _escape(value: str) -> str:
    escaped = "".join("\\" + char if char in ESCAPED else char for char in value)
    if escaped.startswith((" ", "#")):
        escaped = "\\" + escaped
    return escaped[:-1] + "\\ " if len(value) > 1 and value.endswith(" ") else escaped

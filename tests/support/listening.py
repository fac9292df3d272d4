"""Addresses with TLS, as settings have them."""

from __future__ import annotations

from gateway.settings.listen import TlsSettings
from tests.support.certificates import server_files
from tests.support.gateway import ANY_PORT


def tls(**changes):
    certificate, key = server_files()
    return TlsSettings(**{"certificate": certificate, "key": key, **changes})


def secure(address=ANY_PORT, **changes):
    return {"address": address, "tls": tls(**changes)}

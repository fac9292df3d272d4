"""Connections by TLS to a listener of a test."""

from __future__ import annotations

import contextlib
import ssl

from gateway.net.streams.tls import TlsLayer, TlsTerms
from gateway.net.streams.tls_context import make_context
from tests.support.certificates import client_context, make_files
from tests.support.connections import open_site


def open_tls_site(*, is_optional=False, names_user=False, limits=None, **files):
    context = make_context(make_files(**files))
    terms = TlsTerms(is_optional=is_optional, user_from="common_name" if names_user else None)
    return open_site(limits, make_layers=lambda _: [TlsLayer(context, terms)])


async def connect(site, **options):
    return await site.connect(ssl=client_context(**options))


async def close(writer):
    writer.close()
    with contextlib.suppress(OSError, ssl.SSLError):
        await writer.wait_closed()

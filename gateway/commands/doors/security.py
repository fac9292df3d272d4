"""The TLS that a link is secured by, and a first look whether its server is there."""

from __future__ import annotations

import asyncio
import ssl

from gateway.commands.doors.place import Place, Tls
from gateway.commands.doors.traffic import LinkError
from gateway.commands.refusing import EXIT_UNREACHABLE, refuse

TIMEOUT_S = 5.0  # chosen: somebody waits at a terminal


def make_context(tls: Tls | None) -> ssl.SSLContext | None:
    """Return what connections are secured by, None for nothing."""
    if tls is None:
        return None
    context = ssl.create_default_context()
    try:
        if tls.ca is not None:
            context.load_verify_locations(tls.ca)
        if tls.cert is not None:
            context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:  # among them ssl.SSLError
        refuse(f"cannot use --ca, --cert or --key: {error}", error)
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def tls_hint(place: Place) -> str:
    """Return what to try where a server ends a connection before it has said anything of its protocol."""
    return f"; it may speak {'TLS alone (--tls)' if place.tls is None else 'no TLS'} or another protocol"


async def check_reachable(place: Place) -> None:
    """Look whether something takes connections there: a library may try for long. With TLS it is left to the library.

    Raises:
        LinkError: Nothing does.
    """
    if place.tls is not None:
        return
    try:
        async with asyncio.timeout(TIMEOUT_S):
            _, writer = await asyncio.open_connection(place.host, place.port)
    except (OSError, TimeoutError) as error:
        why = str(error) or f"no answer in {TIMEOUT_S:.0f} s"
        raise LinkError(f"cannot connect to {place.door} {place.address}: {why}", EXIT_UNREACHABLE) from error
    writer.close()

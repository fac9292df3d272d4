"""The TLS that a link is secured by."""

from __future__ import annotations

import ssl

from gateway.commands.doors.place import Tls
from gateway.commands.refusing import refuse


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
        refuse(f"--ca, --cert or --key cannot be used: {error}", error)
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

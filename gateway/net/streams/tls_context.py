"""What connections of one address are secured by: certificates, keys and authorities from files, and what is agreed to.

Source: docs/decisions/0027-streams.md, docs/decisions/0052-certificates.md.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from gateway.net.streams.certificate_file import Certificate, read_certificate

Version = Literal["1.2", "1.3"]
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class TlsError(Exception):
    """Certificates that cannot be used; the text is one line for the operator."""


class TlsFiles(NamedTuple):
    """What TLS of one listener needs, in files of the PEM format.

    `certificate` holds the chain, `key` its private key (None: it is in `certificate`), `client_ca` the authorities
    that client certificates are verified by (None: clients are not asked for one), which a client must have where
    `is_client_required`, and `crl` lists what they have revoked. `more` are certificates and keys for other hosts.
    `protocols` are what is agreed to by ALPN.
    """

    certificate: Path
    key: Path | None = None
    client_ca: Path | None = None
    is_client_required: bool = True
    ciphers: str = ""
    more: tuple[tuple[Path, Path | None], ...] = ()
    version_min: Version = "1.2"
    protocols: tuple[str, ...] = ()
    crl: Path | None = None

    def paths(self) -> list[Path]:
        """Return all files."""
        pairs = [(self.certificate, self.key), *self.more, (self.client_ca, self.crl)]
        return [path for pair in pairs for path in pair if path is not None]


class Secured(NamedTuple):
    """What new connections are secured by, and the certificates in it, first the one for clients that name no host."""

    context: ssl.SSLContext
    certificates: tuple[Certificate, ...]


def make_secured(files: TlsFiles) -> Secured:
    """Return what new connections are secured by.

    A client that names a host (SNI) gets the first certificate that is for it, any other the first of all.

    Raises:
        TlsError: A file cannot be read, holds nothing of its kind, or key and certificate do not belong together.
    """
    pairs = [(files.certificate, files.key), *files.more]
    contexts = [_make_context(files, certificate, key) for certificate, key in pairs]
    found = tuple(_find_certificate(certificate) for certificate, _ in pairs)
    if len(contexts) > 1:
        contexts[0].sni_callback = _chooser(list(zip(found, contexts, strict=True))[1:], found[0])
    return Secured(contexts[0], found)


def make_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of `make_secured`.

    Raises:
        TlsError: As there.
    """
    return make_secured(files).context


def _chooser(
    others: Sequence[tuple[Certificate, ssl.SSLContext]], first: Certificate
) -> Callable[[ssl.SSLObject, str | None, ssl.SSLContext], None]:
    def choose(connection: ssl.SSLObject, host: str | None, _: ssl.SSLContext) -> None:
        name = (host or "").lower().rstrip(".")
        if not name or first.is_for(name):
            return
        for certificate, context in others:
            if certificate.is_for(name):
                connection.context = context
                return

    return choose


def _find_certificate(path: Path) -> Certificate:
    try:
        return read_certificate(path)
    except OSError as error:
        raise TlsError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TlsError(f"cannot use {path}: {error}") from error


def _make_context(files: TlsFiles, certificate: Path, key: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[files.version_min]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.verify_mode = ssl.CERT_NONE
    if files.protocols:
        context.set_alpn_protocols(files.protocols)
    if files.ciphers:
        try:
            context.set_ciphers(files.ciphers)
        except ssl.SSLError as error:
            raise TlsError(f"no cipher of {files.ciphers!r} is known") from error
    _load(certificate, lambda: context.load_cert_chain(certificate, key, _no_password), key)
    if files.client_ca is not None:
        authorities = files.client_ca
        _load(authorities, lambda: context.load_verify_locations(authorities))
        context.verify_mode = ssl.CERT_REQUIRED if files.is_client_required else ssl.CERT_OPTIONAL
        if files.crl is not None:
            _load_revoked(context, files.crl)
    return context


def _load_revoked(context: ssl.SSLContext, path: Path) -> None:
    """Refuse certificates that a list in `path` has, and those of authorities that have no list there."""
    _load(path, lambda: context.load_verify_locations(path))
    if not context.cert_store_stats()["crl"]:
        raise TlsError(f"cannot use {path}: no list of revoked certificates is in it")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _no_password() -> str:
    """Stand for a pass phrase, which OpenSSL would else ask the terminal for."""
    raise TlsError("the key has a pass phrase: save it without one")


def _load(path: Path, load: Callable[[], None], key: Path | None = None) -> None:
    named = f"{path} and {key}" if key is not None else str(path)
    try:
        load()
    except ssl.SSLError as error:
        raise TlsError(f"cannot use {named}: {reason_of(error)}") from error
    except OSError as error:
        raise TlsError(f"cannot read {named}: {error.strerror}") from error
    except TlsError as error:
        raise TlsError(f"cannot use {named}: {error}") from error


def reason_of(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason in words. What the peer said of this side, in an alert, is told as that."""
    verify = getattr(error, "verify_message", "")
    if "PEM lib" in str(error):  # OpenSSL says no more
        return "no certificate or key of the PEM format is in it"
    reason = (error.reason or error.strerror or str(error)).replace("_", " ").lower()
    _, is_alert, alert = reason.partition(" alert ")
    if is_alert:  # servers' certificates are refused by these, and nothing else is
        refuses = "certificate" in alert or alert == "unknown ca"
        return f"the peer {'refuses the certificate of this server' if refuses else 'gave up'}: {alert}"
    return f"{reason}: {verify}" if verify else reason

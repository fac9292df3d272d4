"""Certificates made for a test run: an authority, a server's, clients'."""

from __future__ import annotations

import datetime as dt
import functools
import ssl
import tempfile
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from gateway.net.streams.tls_context import TlsFiles
from gateway.runtime.loop import Clock

_FOLDER = tempfile.TemporaryDirectory(prefix="lmq-certificates-")
EXPIRED_AT = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
HOSTS = ("127.0.0.1", "localhost", "::1")


@functools.cache
def authority(name="first"):
    """Return the certificate authority of that name."""
    return trustme.CA(organization_name=name)


@functools.cache
def authority_file(name="first"):
    """Return the file with its certificate."""
    path = Path(_FOLDER.name) / f"ca-{name}.pem"
    authority(name).cert_pem.write_to_path(path)
    return path


def issue(folder, *hosts, of="first", common_name=None, is_expired=False, not_after=None):
    """Write a certificate and its key to `folder`; return both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = authority(of).issue_cert(
        *(hosts or HOSTS), common_name=common_name, not_after=EXPIRED_AT if is_expired else not_after
    )
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
    made.private_key_pem.write_to_path(key)
    return certificate, key


@functools.cache
def server_files():
    """Return the certificate and key of a server on this machine."""
    return issue(Path(_FOLDER.name) / "server")


@functools.cache
def client_files(common_name="sensor-1", of="first", *, is_expired=False):
    """Return the certificate and key of a client."""
    folder = Path(_FOLDER.name) / f"client-{of}-{common_name}-{is_expired}"
    return issue(folder, f"{common_name}.test", of=of, common_name=common_name, is_expired=is_expired)


def revoke(folder, *paths, of="first"):
    """Return a file that lists certificates as revoked by their authority."""
    own = authority(of)
    key = serialization.load_pem_private_key(own.private_key_pem.bytes(), None)
    now = dt.datetime.fromtimestamp(Clock().now_ms() / 1_000, dt.UTC)
    issuer = x509.load_pem_x509_certificate(own.cert_pem.bytes()).subject
    builder = x509.CertificateRevocationListBuilder(issuer, now - dt.timedelta(1), now + dt.timedelta(9))
    for path in paths:
        number = x509.load_pem_x509_certificate(path.read_bytes()).serial_number
        builder = builder.add_revoked_certificate(x509.RevokedCertificateBuilder(number, now).build())
    found = folder / "crl.pem"
    found.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return found


def make_files(**changes):
    """Return what a server's TLS is made of."""
    certificate, key = server_files()
    return TlsFiles(certificate, key)._replace(**changes)


def client_context(*, trusts="first", shows=None, version=None):
    """Return a client's context, which trusts an authority and shows a certificate (its file, its key) or none."""
    context = ssl.create_default_context(cafile=authority_file(trusts))
    if shows is not None:
        context.load_cert_chain(*shows)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    return context

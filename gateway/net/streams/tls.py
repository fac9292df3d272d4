"""TLS, by the standard library's sans-I/O half: `ssl.MemoryBIO` on both sides of an `SSLObject`.

Source: docs/decisions/0027-streams.md.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gateway.net.streams.layer import Layer, Peer, StreamError

HANDSHAKE_BYTE = 0x16  # a TLS record that begins a handshake; no first byte of MQTT, AMQP, RocketMQ or HTTP
RECORD_BYTES_MAX = 16 * 1024  # of plain text in one record, so a read gives no more
RECORDS_AT_A_TIME = 64  # each costs some 2 us, whatever is in it
CLIENT_HELLO_BYTES_MAX = 256 * 1024  # far more than any handshake sends before it is through, certificates included
KIND = "tls"


class TlsError(Exception):
    """Certificates that cannot be used; the text is one line for the operator."""


class TlsFiles(NamedTuple):
    """What TLS of one listener needs, in files of the PEM format.

    `certificate` holds the chain, `key` its private key (None: it is in `certificate`), `client_ca` the authorities
    that client certificates are verified by (None: clients are not asked for one), which a client must have where
    `is_client_required`.
    """

    certificate: Path
    key: Path | None = None
    client_ca: Path | None = None
    is_client_required: bool = True
    ciphers: str = ""


def make_context(files: TlsFiles) -> ssl.SSLContext:
    """Return what new connections are secured by.

    Raises:
        TlsError: A file cannot be read, holds nothing of its kind, or key and certificate do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.verify_mode = ssl.CERT_NONE
    if files.ciphers:
        try:
            context.set_ciphers(files.ciphers)
        except ssl.SSLError as error:
            raise TlsError(f"no cipher of {files.ciphers!r} is known") from error
    _load(files.certificate, lambda: context.load_cert_chain(files.certificate, files.key, _no_password), files.key)
    if files.client_ca is not None:
        authorities = files.client_ca
        _load(authorities, lambda: context.load_verify_locations(authorities))
        context.verify_mode = ssl.CERT_REQUIRED if files.is_client_required else ssl.CERT_OPTIONAL
    return context


def _no_password() -> str:
    """Stand for a pass phrase, which OpenSSL would else ask the terminal for."""
    raise TlsError("the key has a pass phrase, which nobody is there to type")


def _load(path: Path, load: Callable[[], None], key: Path | None = None) -> None:
    named = f"{path} and {key}" if key is not None else str(path)
    try:
        load()
    except ssl.SSLError as error:
        raise TlsError(f"cannot use {named}: {_reason_of(error)}") from error
    except OSError as error:
        raise TlsError(f"cannot read {named}: {error.strerror}") from error
    except TlsError as error:
        raise TlsError(f"cannot use {named}: {error}") from error


class TlsLayer(Layer):
    """The server's end of TLS.

    Args:
        context: As `make_context` returns it.
        is_optional: Let a peer in that begins without TLS too, as it is.
        names_user: The name in the peer's certificate is who it is.
    """

    def __init__(self, context: ssl.SSLContext, *, is_optional: bool = False, names_user: bool = False) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_optional = is_optional
        self._names_user = names_user
        self._before = 0  # how many bytes came until it was open

    def receive_data(self, data: bytes) -> bytes:
        """Take records; return what they carry.

        Raises:
            StreamError: They are no TLS, or the handshake failed; an alert is in `data_to_send`.
        """
        if not self.is_open:
            if self._is_optional and not self._before and data[0] != HANDSHAKE_BYTE:
                self.is_open = self.is_done = True
                return data
            self._before += len(data)
        if data:
            self._incoming.write(data)
        try:
            if not self.is_open and not self._shake_hands():
                return b""
            return self._read()
        except ssl.SSLError as error:
            raise StreamError(KIND, _reason_of(error)) from error

    def _shake_hands(self) -> bool:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            if self._before > CLIENT_HELLO_BYTES_MAX:
                raise StreamError(KIND, "the handshake has no end") from None
            return False
        self.is_open = True
        return True

    def _read(self) -> bytes:
        parts: list[bytes] = []
        self.has_more = False
        try:
            while part := self._object.read(RECORD_BYTES_MAX):
                parts.append(part)
                if len(parts) % RECORDS_AT_A_TIME == 0 and self.is_over():
                    self.has_more = True
                    break
            else:
                self.is_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_ended = True
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def send(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return the records that carry `data`.

        Raises:
            StreamError: The peer has broken the stream off.
        """
        try:
            if data:
                self._object.write(data)
        except ssl.SSLError as error:
            raise StreamError(KIND, _reason_of(error)) from error
        return self._outgoing.read()

    def close(self) -> None:
        """Say that nothing more is sent: an alert `close_notify`."""
        if self.is_open:
            with suppress(ssl.SSLError):  # always: it wants to read the peer's, which nobody waits for
                self._object.unwrap()

    def data_to_send(self) -> bytes:
        """Return what the handshake has to say, alerts, and answers to the peer's change of keys."""
        return self._outgoing.read()

    def peer(self, known: Peer) -> Peer:
        """Return what is known of the peer, with the name in its certificate if that is who it is."""
        if self.is_done or not self._names_user:
            return known
        return known._replace(name=common_name(self._object.getpeercert() or {}))


def common_name(certificate: Mapping[str, object]) -> str:
    """Return the common name of a certificate's subject, as `getpeercert` gives it; empty where there is none."""
    subject = certificate.get("subject")
    for part in subject if isinstance(subject, tuple) else ():
        for name, value in part:
            if name == "commonName":
                return str(value)
    return ""


def _reason_of(error: ssl.SSLError) -> str:
    """Return OpenSSL's reason in words."""
    verify = getattr(error, "verify_message", "")
    if "PEM lib" in str(error):  # OpenSSL says no more
        return "no certificate or key of the PEM format is in it"
    reason = (error.reason or error.strerror or str(error)).replace("_", " ").lower()
    return f"{reason}: {verify}" if verify else reason

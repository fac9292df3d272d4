"""TLS, by the standard library's sans-I/O half: `ssl.MemoryBIO` on both sides of an `SSLObject`.

Source: docs/decisions/0027-streams.md.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import NamedTuple

from gateway.net.streams.certificate_names import find_name
from gateway.net.streams.first_bytes import HANDSHAKE_BYTE, told_of
from gateway.net.streams.layer import Layer, Peer, StreamError
from gateway.net.streams.tls_context import reason_of
from gateway.net.streams.tls_counts import TlsCounts
from gateway.settings.listen import NameSource

RECORD_BYTES_MAX = 16 * 1024  # of plain text in one record, so a read gives no more
RECORDS_AT_A_TIME = 64  # each costs some 2 us, whatever is in it
CLIENT_HELLO_BYTES_MAX = 256 * 1024  # far more than any handshake sends before it is through, certificates included
KIND = "tls"
NO_TLS = "no TLS"
HTTP_CAME = f"{NO_TLS}{told_of(b'GET ')}"  # the reason where a browser was told http://


class TlsTerms(NamedTuple):
    """What one address asks of its peers, beside what its context says.

    `is_optional` lets a peer in that begins without TLS too, as it is; `user_from` says where in the peer's certificate
    its user is named, `client_from` where its client identifier is, which must be there then (None: nowhere);
    `needs_protocol` refuses a peer with which no protocol was agreed to (ALPN).
    """

    is_optional: bool = False
    user_from: NameSource | None = None
    client_from: NameSource | None = None
    needs_protocol: bool = False


NO_TERMS = TlsTerms()


class TlsLayer(Layer):
    """The server's end of TLS.

    Args:
        context: As `make_context` returns it.
        terms: What else is asked of the peer.
        counts: Where its handshake is counted.
    """

    def __init__(self, context: ssl.SSLContext, terms: TlsTerms = NO_TERMS, counts: TlsCounts | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._terms = terms
        self._counts = counts or TlsCounts()
        self._name = self._client = ""  # of the peer, by its certificate
        self._certificate = b""
        self._before = 0  # how many bytes came until it was open

    def receive_data(self, data: bytes) -> bytes:
        """Take records; return what they carry.

        Raises:
            StreamError: They are no TLS, or the handshake failed; an alert is in `data_to_send`.
        """
        if not self.is_open:
            if not self._before and data[0] != HANDSHAKE_BYTE:
                if not self._terms.is_optional:
                    raise self._failed(f"{NO_TLS}{told_of(data)}")
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
            reason = reason_of(error)
            raise StreamError(KIND, reason) if self.is_open else self._failed(reason) from error

    def _failed(self, reason: str) -> StreamError:
        """Return what ends a handshake, which is counted."""
        self._counts.note_failed(reason.lower())
        return StreamError(KIND, reason)

    def _shake_hands(self) -> bool:
        shaken = self._object
        try:
            shaken.do_handshake()
        except ssl.SSLWantReadError:
            if self._before > CLIENT_HELLO_BYTES_MAX:
                raise self._failed("the handshake has no end") from None
            return False
        if self._terms.needs_protocol and shaken.selected_alpn_protocol() is None:
            raise self._failed("no protocol was agreed to (ALPN)")
        self._find_names()
        self._counts.shaken[shaken.version() or ""] += 1
        self.is_open = True
        return True

    def _find_names(self) -> None:
        """Find the peer's name in its certificate, where it has one with a name."""
        terms = self._terms
        self._certificate = self._object.getpeercert(binary_form=True) or b""
        if terms.user_from is None and terms.client_from is None:
            return
        certificate = self._object.getpeercert()
        if not certificate:
            return
        if terms.user_from is not None:
            self._name = find_name(certificate, terms.user_from)
        if terms.client_from is not None:
            self._client = find_name(certificate, terms.client_from)
            if not self._client:
                raise self._failed(f"no name of the kind {terms.client_from} is in the certificate")

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
            raise StreamError(KIND, reason_of(error)) from error
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
        """Return what is known of the peer, with what its certificate says."""
        if self.is_done:
            return known
        return known._replace(name=self._name, client=self._client, certificate=self._certificate)

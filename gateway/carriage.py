"""What carries the bytes of connections to one address, and the files that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gateway.door import Listen
from gateway.net.streams.certificate_file import Certificate
from gateway.net.streams.layer import Layer
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.net.streams.tls import TlsLayer, TlsTerms
from gateway.net.streams.tls_context import Secured, TlsError, TlsFiles, make_secured
from gateway.net.streams.tls_counts import TlsCounts
from gateway.net.streams.websocket import WebSocketLayer
from gateway.settings.listen import ANY_PATH
from gateway.settings.models import SettingsError

# What an address is told by where clients must use TLS: the name that URLs have for it.
SECURE_NAMES = {
    "mqtt": "mqtts",
    "amqp": "amqps",
    "broker": "broker-tls",
    "namesrv": "namesrv-tls",
    "admin": "admin-tls",
}
# What is agreed to by ALPN, as IANA names it; RocketMQ has no such name.
PROTOCOLS = {"mqtt": ("mqtt",), "amqp": ("amqp",), "admin": ("http/1.1",)}
OVER_HTTP = ("http/1.1",)

Stamp = (
    tuple[int, int, int, int] | None
)  # of a file: another one, or another content, has another; None: it is not there


class Reading(NamedTuple):
    """What the files of one address held, `secured` where they are for TLS, and how they were stamped before that."""

    secured: Secured | None
    stamps: tuple[Stamp, ...]


class SecureAddress(NamedTuple):
    """An address with TLS, for operators."""

    name: str
    address: str
    certificates: tuple[Certificate, ...]
    counts: TlsCounts


class Carriage:
    """What carries the bytes of connections to one address; certificates can be replaced, for those that come then.

    Raises:
        SettingsError: As `read`.
    """

    def __init__(self, listen: Listen) -> None:
        self.listen = listen
        self.counts = TlsCounts()
        self._files, self._terms = _files_of(listen), _terms_of(listen)
        self._reading = self.read()

    @property
    def is_plain(self) -> bool:
        """Whether nothing does: the bytes are the socket's."""
        return self._files is None and not self.listen.proxies and not self.listen.websocket

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificates in use; none without TLS."""
        secured = self._reading.secured
        return () if secured is None else secured.certificates

    @property
    def stamps(self) -> tuple[Stamp, ...]:
        """How the files were stamped when they were read for what is in use."""
        return self._reading.stamps

    def read(self) -> Reading:
        """Return what the files of certificates hold now.

        Raises:
            SettingsError: One cannot be used.
        """
        if self._files is None:
            return Reading(None, ())
        stamps = self.look()
        try:
            return Reading(make_secured(self._files), stamps)
        except TlsError as error:
            raise SettingsError(f"tls of {self.listen.name} on {self.listen.address}: {error}") from error

    def look(self) -> tuple[Stamp, ...]:
        """Return how the files are stamped now; links are followed."""
        return () if self._files is None else tuple(map(_stamp_of, self._files.paths()))

    def use(self, reading: Reading) -> None:
        """Secure new connections by what was read."""
        self._reading = reading

    def make_layers(self, host: str) -> Sequence[Layer]:
        """Return the layers of a new connection.

        Raises:
            StreamError: The host may not connect here.
        """
        listen, secured = self.listen, self._reading.secured
        layers: list[Layer] = []
        if listen.proxies:
            layers.append(ProxyHeader(host, listen.proxies))
        if secured is not None:
            layers.append(TlsLayer(secured.context, self._terms, self.counts))
        if listen.websocket:
            layers.append(WebSocketLayer(None if listen.websocket == ANY_PATH else listen.websocket))
        return layers


def _files_of(listen: Listen) -> TlsFiles | None:
    tls = listen.tls
    if tls is None:
        return None
    return TlsFiles(
        certificate=tls.certificate,
        key=tls.key,
        client_ca=tls.client_ca,
        is_client_required=tls.client_certificate == "required",
        ciphers=tls.ciphers,
        more=tuple((one.certificate, one.key) for one in tls.more_certificates),
        version_min=tls.version_min,
        protocols=OVER_HTTP if listen.websocket else PROTOCOLS.get(listen.name, ()),
        crl=tls.crl,
    )


def _terms_of(listen: Listen) -> TlsTerms:
    tls = listen.tls
    if tls is None:
        return TlsTerms()
    return TlsTerms(
        is_optional=bool(tls.optional),
        user_from=tls.user_from or ("common_name" if tls.name_is_user else None),
        client_from=listen.client_id_from,
        needs_protocol=tls.alpn_required,
    )


def _stamp_of(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def told_name(listen: Listen) -> str:
    """Return the name that an address is told by."""
    is_secure = listen.tls is not None and not listen.tls.optional
    if listen.websocket:
        return "wss" if is_secure else "ws"
    return SECURE_NAMES.get(listen.name, listen.name) if is_secure else listen.name

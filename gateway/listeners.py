"""All addresses that the gateway's doors listen on, and what those with TLS are secured by."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence

from gateway.address import format_address, parse_address
from gateway.door import Address, Door, Listen, find_listening
from gateway.listen_settings import TlsSettings
from gateway.net.descriptors import Capacity
from gateway.net.endpoint import Endpoint
from gateway.net.listener import Listener
from gateway.net.streams.layer import Layer
from gateway.net.streams.tls import TlsError, TlsFiles, TlsLayer, make_context
from gateway.settings import GatewaySettings, SettingsError

# What an address is told by where clients must use TLS: the name that URLs have for it.
SECURE_NAMES = {"mqtt": "mqtts", "amqp": "amqps", "broker": "broker-tls", "namesrv": "namesrv-tls"}


class Secured:
    """TLS of one address; its certificates can be replaced, for connections that come from then on.

    Raises:
        SettingsError: As `read`.
    """

    def __init__(self, listen: Listen, tls: TlsSettings) -> None:
        self._listen = listen
        self._tls = tls
        self.context = self.read()

    def read(self) -> ssl.SSLContext:
        """Return what the files hold now.

        Raises:
            SettingsError: One cannot be used.
        """
        try:
            return make_context(_files(self._tls))
        except TlsError as error:
            raise SettingsError(f"tls of {self._listen.name} on {self._listen.address}: {error}") from error

    def make_layers(self, host: str) -> Sequence[Layer]:
        """Return what carries the bytes of a new connection."""
        del host
        return [TlsLayer(self.context, is_optional=bool(self._tls.optional))]


def _files(tls: TlsSettings) -> TlsFiles:
    return TlsFiles(
        certificate=tls.certificate,
        key=tls.key,
        client_ca=tls.client_ca,
        is_client_required=tls.client_certificate == "required",
        ciphers=tls.ciphers,
    )


class Listeners:
    """Opens doors to the network and shuts them."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._listeners: list[Listener] = []
        self._secured: list[Secured] = []
        self._bound: dict[str, list[tuple[str, Address]]] = {}  # by door, with the names that they are told by

    async def open(self, door: Door, endpoint: Endpoint) -> dict[str, Address]:
        """Listen on a door's addresses; return what the first of each name was bound to.

        Raises:
            ListenError: An address cannot be listened on.
            SettingsError: A certificate cannot be used.
        """
        first: dict[str, Address] = {}
        for listen in door.listens():
            secured = None if listen.tls is None else Secured(listen, listen.tls)
            layers = None if secured is None else secured.make_layers
            name = told_name(listen)
            listener = Listener(name, endpoint, *parse_address(listen.address), layers)
            bound = await listener.start()
            first.setdefault(listen.name, bound)
            self.note(door.name, name, bound)
            self._listeners.append(listener)
            self._capacity.add(listener)
            if secured is not None:
                self._secured.append(secured)
        return first

    def note(self, door: str, name: str, bound: Address) -> None:
        """Note that a door listens on an address, which is told by a name."""
        self._bound.setdefault(door, []).append((name, bound))

    def first(self) -> dict[str, Address]:
        """Return the first address of each name."""
        found: dict[str, Address] = {}
        for bound in self._bound.values():
            for name, address in bound:
                found.setdefault(name, address)
        return found

    def lines(self, doors: Iterable[str]) -> list[str]:
        """Return one line for each address, in the order of `doors`."""
        bound = [entry for door in doors for entry in self._bound.get(door, [])]
        return [f"listening {name} {format_address(*address)}" for name, address in bound]

    def read_certificates(self) -> list[ssl.SSLContext]:
        """Return what new connections are to be secured by, for `use_certificates`; reads files.

        Raises:
            SettingsError: A certificate cannot be used; those in use are as before.
        """
        return [secured.read() for secured in self._secured]

    def use_certificates(self, contexts: Sequence[ssl.SSLContext]) -> None:
        """Secure new connections by these; those that are open keep theirs."""
        for secured, context in zip(self._secured, contexts, strict=True):
            secured.context = context

    def stop(self) -> None:
        """Accept no more; open connections stay."""
        for listener in self._listeners:
            listener.stop()


def told_name(listen: Listen) -> str:
    """Return the name that an address is told by."""
    is_secure = listen.tls is not None and not listen.tls.optional
    return SECURE_NAMES.get(listen.name, listen.name) if is_secure else listen.name


def check_certificates(settings: GatewaySettings) -> None:
    """Read all certificates that the settings name.

    Raises:
        SettingsError: One cannot be used.
    """
    for name, setting in (
        ("mqtt", settings.mqtt.listen),
        ("amqp", settings.amqp.listen),
        ("broker", settings.rocketmq.broker),
        ("namesrv", settings.rocketmq.namesrv),
    ):
        for listen in find_listening(name, setting):
            if listen.tls is not None:
                Secured(listen, listen.tls)

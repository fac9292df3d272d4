"""All addresses that the gateway's doors listen on, and what carries the bytes of connections there."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from gateway.address import format_address
from gateway.door import Address, Door, Listen, find_listening
from gateway.listen_settings import TlsSettings, find_address
from gateway.net.descriptors import Capacity
from gateway.net.endpoint import Endpoint
from gateway.net.listener import Listener
from gateway.net.streams.certificate_file import expires_at_s
from gateway.net.streams.layer import Layer, LayerFactory
from gateway.net.streams.proxy_header import ProxyHeader
from gateway.net.streams.tls import TlsError, TlsFiles, TlsLayer, make_context
from gateway.net.streams.websocket import WebSocketLayer
from gateway.settings import GatewaySettings, SettingsError

# What an address is told by where clients must use TLS: the name that URLs have for it.
SECURE_NAMES = {
    "mqtt": "mqtts",
    "amqp": "amqps",
    "broker": "broker-tls",
    "namesrv": "namesrv-tls",
    "admin": "admin-tls",
}


class Carriage:
    """What carries the bytes of connections to one address; certificates can be replaced, for those that come then.

    Raises:
        SettingsError: As `read`.
    """

    def __init__(self, listen: Listen) -> None:
        self.listen = listen
        self.context = self.read()

    @property
    def is_plain(self) -> bool:
        """Whether nothing does: the bytes are the socket's."""
        return self.context is None and not self.listen.proxies and not self.listen.websocket

    def read(self) -> ssl.SSLContext | None:
        """Return what the files of certificates hold now, None where there are none.

        Raises:
            SettingsError: One cannot be used.
        """
        listen = self.listen
        if listen.tls is None:
            return None
        try:
            return make_context(_files(listen.tls))
        except TlsError as error:
            raise SettingsError(f"tls of {listen.name} on {listen.address}: {error}") from error

    def make_layers(self, host: str) -> Sequence[Layer]:
        """Return the layers of a new connection.

        Raises:
            StreamError: The host may not connect here.
        """
        listen = self.listen
        layers: list[Layer] = []
        if listen.proxies:
            layers.append(ProxyHeader(host, listen.proxies))
        if self.context is not None and listen.tls is not None:
            layers.append(
                TlsLayer(self.context, is_optional=bool(listen.tls.optional), names_user=listen.tls.name_is_user)
            )
        if listen.websocket:
            layers.append(WebSocketLayer(listen.websocket))
        return layers


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
        self._opened: list[tuple[str, str, str, Listener]] = []  # with their doors, names and addresses
        self._carriages: list[Carriage] = []
        self._bound: dict[str, list[tuple[str, Address]]] = {}  # by door, with the names that they are told by

    async def open(self, door: Door, endpoint: Endpoint) -> dict[str, Address]:
        """Listen on a door's addresses; return what the first of each name was bound to.

        Raises:
            ListenError: An address cannot be listened on.
            SettingsError: A certificate cannot be used.
        """
        first: dict[str, Address] = {}
        for listen in door.listens():
            address, layers = self.carry(listen)
            name = told_name(listen)
            own = endpoint.at(door.connect_at(listen), listen.connections_max)
            listener = Listener(name, own, *address, layers, is_proxied=bool(listen.proxies))
            bound = await listener.start()
            first.setdefault(listen.name, bound)
            self.note(door.name, name, bound)
            self._listeners.append(listener)
            self._opened.append((door.name, name, format_address(*bound), listener))
            self._capacity.add(listener)
        return first

    def carry(self, listen: Listen) -> tuple[Address, LayerFactory | None]:
        """Return the host and port to listen on, and what makes the layers of connections there.

        Raises:
            SettingsError: A certificate cannot be used.
        """
        carriage = Carriage(listen)
        self._carriages.append(carriage)
        address = find_address(listen.address)
        assert address is not None  # those that are off are not among them
        return address, None if carriage.is_plain else carriage.make_layers

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

    def connections(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield the door, name and address of each listener of a door, and how many connections there are open."""
        for door, name, address, listener in self._opened:
            yield door, name, address, listener.connections

    def read_certificates(self) -> list[ssl.SSLContext | None]:
        """Return what new connections are to be secured by, for `use_certificates`; reads files.

        Raises:
            SettingsError: A certificate cannot be used; those in use are as before.
        """
        return [carriage.read() for carriage in self._carriages]

    def use_certificates(self, contexts: Sequence[ssl.SSLContext | None]) -> None:
        """Secure new connections by these; those that are open keep theirs."""
        for carriage, context in zip(self._carriages, contexts, strict=True):
            carriage.context = context

    def certificates(self) -> Iterator[tuple[str, str, int]]:
        """Yield the name and address of each that has TLS, and when its certificate expires; reads files."""
        for carriage in self._carriages:
            listen = carriage.listen
            if listen.tls is not None:
                with suppress(OSError, ValueError):  # a file that goes away meanwhile: SIGHUP tells of it
                    yield told_name(listen), listen.address, expires_at_s(listen.tls.certificate)

    def stop(self) -> None:
        """Accept no more; open connections stay."""
        for listener in self._listeners:
            listener.stop()


def told_name(listen: Listen) -> str:
    """Return the name that an address is told by."""
    is_secure = listen.tls is not None and not listen.tls.optional
    if listen.websocket:
        return "wss" if is_secure else "ws"
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
        ("admin", settings.admin.listen),
    ):
        for listen in find_listening(name, setting):
            Carriage(listen)

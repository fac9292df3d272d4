"""All addresses that the gateway's doors listen on, and what carries the bytes of connections there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gateway.address import format_address
from gateway.carriage import Carriage, Reading, SecureAddress, told_name
from gateway.certificate_watch import CertificateWatch
from gateway.door import Address, Door, Listen, find_listening
from gateway.net.descriptors import Capacity
from gateway.net.endpoint import Endpoint
from gateway.net.listener import Listener
from gateway.net.streams.certificate_file import Certificate
from gateway.net.streams.layer import LayerFactory
from gateway.settings.listen import find_address
from gateway.settings.models import GatewaySettings


class Listeners:
    """Opens doors to the network and shuts them."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._listeners: list[Listener] = []
        self._opened: list[tuple[str, str, str, Listener]] = []  # with their doors, names and addresses
        self._carriages: list[Carriage] = []
        self.watch = CertificateWatch(self._carriages)
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
            own = endpoint.at(door.connect_at(listen), listen.connections_max, listen.rates, listen.ways)
            listener = Listener(name, own, *address, layers, is_proxied=bool(listen.proxies), mode=listen.mode)
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
        assert address is not None  # addresses that are off were left out before
        return address, None if carriage.is_plain else carriage.make_layers

    def note(self, door: str, name: str, bound: Address) -> None:
        """Note that a door listens on an address, which is told by a name."""
        self._bound.setdefault(door, []).append((name, bound))

    def first(self) -> dict[str, Address]:
        """Return the first address of each name."""
        found: dict[str, Address] = {}
        for name, address in self.bound():
            found.setdefault(name, address)
        return found

    def bound(self) -> Iterator[tuple[str, Address]]:
        """Yield each address, with the name that it is told by."""
        for entries in self._bound.values():
            yield from entries

    def lines(self, doors: Iterable[str]) -> list[str]:
        """Return one line for each address, in the order of `doors`."""
        bound = [entry for door in doors for entry in self._bound.get(door, [])]
        return [f"listening {name} {format_address(*address)}" for name, address in bound]

    def connections(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield the door, name and address of each listener of a door, and how many connections there are open."""
        for door, name, address, listener in self._opened:
            yield door, name, address, listener.connections

    def read_certificates(self) -> list[Reading]:
        """Return what new connections are to be secured by, for `use_certificates`; reads files.

        Raises:
            SettingsError: A certificate cannot be used; those in use are as before.
        """
        return [carriage.read() for carriage in self._carriages]

    def use_certificates(self, readings: Sequence[Reading]) -> None:
        """Secure new connections by these; those that are open keep theirs."""
        for carriage, reading in zip(self._carriages, readings, strict=True):
            carriage.use(reading)

    def certificates(self) -> Iterator[SecureAddress]:
        """Yield each address that has TLS, with the certificates in use there."""
        for carriage in self._carriages:
            if carriage.certificates:
                listen = carriage.listen
                yield SecureAddress(told_name(listen), listen.address, carriage.certificates, carriage.counts)

    def stop(self) -> None:
        """Accept no more; open connections stay."""
        self.watch.stop()
        for listener in self._listeners:
            listener.stop()


def check_certificates(settings: GatewaySettings) -> list[Certificate]:
    """Read all certificates that the settings name, and return those of the gateway.

    Raises:
        SettingsError: One cannot be used.
    """
    found: list[Certificate] = []
    for name, setting in (
        ("mqtt", settings.mqtt.listen),
        ("amqp", settings.amqp.listen),
        ("broker", settings.rocketmq.broker),
        ("namesrv", settings.rocketmq.namesrv),
        ("admin", settings.admin.listen),
    ):
        for listen in find_listening(name, setting):
            found += Carriage(listen).certificates
    return found

"""How many connections a door lets in, in all and from one address."""

from __future__ import annotations

from ipaddress import ip_network

from gateway.address import is_within, pack_network
from gateway.net.descriptors import Capacity
from gateway.settings.limits import AddressLimitsSettings

LISTENER_FULL = "listener_connections_max"
HOST_FULL = "host_connections_max"
ADDRESS_FULL = "address_connections_max"
TURNED_MAX = 64  # at once; chosen: they hold descriptors that clients could have


class Counts:
    """How many connections each address has, as `pack_network` names it."""

    __slots__ = ("_by_network",)

    def __init__(self) -> None:
        self._by_network: dict[bytes, int] = {}

    def of(self, network: bytes) -> int:
        """Return how many an address has."""
        return self._by_network.get(network, 0)

    def add(self, network: bytes) -> None:
        """Count one more; without a maximum too: one may be set meanwhile."""
        self._by_network[network] = self._by_network.get(network, 0) + 1

    def take(self, network: bytes) -> None:
        """Count one less."""
        left = self._by_network.get(network, 0) - 1
        if left > 0:
            self._by_network[network] = left
        else:
            self._by_network.pop(network, None)


class AddressConnections(Counts):
    """How many connections each address has and may have, of all doors together.

    Args:
        settings: How many.
    """

    __slots__ = ("_count_max", "_exempt")

    def __init__(self, settings: AddressLimitsSettings) -> None:
        super().__init__()
        self.use(settings)

    def use(self, settings: AddressLimitsSettings) -> None:
        """Go by other settings from now on; open connections stay."""
        self._count_max = settings.connections_max
        self._exempt = [ip_network(text) for text in settings.exempt]

    def is_full(self, host: str, network: bytes) -> bool:
        """Return whether a host, of such an address, may have no more."""
        return 0 < self._count_max <= self.of(network) and not is_within(host, self._exempt)


class ConnectionLimits:
    """Counts the open connections of one door.

    Args:
        count_max: Of all hosts; 0: as many as all doors share by `capacity`.
        host_count_max: Of each address; 0: any number.
        capacity: What all doors share.
        addresses: What each address has at all doors.
    """

    __slots__ = ("_addresses", "_by_host", "_capacity", "_count_max", "_host_count_max", "count", "turned_count")

    def __init__(
        self,
        count_max: int = 0,
        host_count_max: int = 0,
        capacity: Capacity | None = None,
        addresses: AddressConnections | None = None,
    ) -> None:
        self._capacity = capacity
        self._count_max = count_max
        self._host_count_max = host_count_max
        self._addresses = addresses or AddressConnections(AddressLimitsSettings())
        self._by_host = Counts()
        self.count = 0
        self.turned_count = 0  # refused, and being told so

    def reload(self, count_max: int, host_count_max: int) -> None:
        """Go by other maxima from now on; open connections stay."""
        self._count_max = count_max
        self._host_count_max = host_count_max

    def refusal(self, host: str) -> str:
        """Return why another connection of `host` is refused, or an empty text and count it.

        Without a host it counts to no host; `host_refusal` counts it later.
        """
        if self._count_max and self.count >= self._count_max:
            return "connections_max"
        network = pack_network(host) if host else b""
        reason = self._find_full(host, network)
        if reason:
            return reason
        if self._capacity is not None:
            reason = self._capacity.watermarks.refusal(self._capacity.count)
            if reason or not self._capacity.enter():
                return reason or "descriptors"
        self._add(network)
        self.count += 1
        return ""

    def host_refusal(self, host: str) -> str:
        """Return why a connection that was let in without a host is refused, or an empty text and count it."""
        network = pack_network(host)
        reason = self._find_full(host, network)
        if not reason:
            self._add(network)
        return reason

    def enter_turned(self) -> bool:
        """Count a connection that is refused and may stay until it is told; False where it may not."""
        if self.turned_count >= TURNED_MAX or (self._capacity is not None and not self._capacity.enter()):
            return False
        self.turned_count += 1
        return True

    def release_turned(self) -> None:
        """Forget a connection that was refused and told so."""
        self.turned_count -= 1
        if self._capacity is not None:
            self._capacity.leave()

    def _find_full(self, host: str, network: bytes) -> str:
        """Return why a host may have no more connections, or an empty text; empty names are no host's."""
        if not network:
            return ""
        if 0 < self._host_count_max <= self._by_host.of(network):
            return HOST_FULL
        return ADDRESS_FULL if self._addresses.is_full(host, network) else ""

    def _add(self, network: bytes) -> None:
        if network:
            self._by_host.add(network)
            self._addresses.add(network)

    def release(self, host: str) -> None:
        """Forget a connection that was let in and counted to `host`, or without one."""
        self.count -= 1
        if self._capacity is not None:
            self._capacity.leave()
        if host:
            network = pack_network(host)
            self._by_host.take(network)
            self._addresses.take(network)


class ListenerLimits(ConnectionLimits):
    """The same for one address of a door, which has a maximum of its own; all else is asked of the door's limits."""

    __slots__ = ("_of_door", "_own_max")

    def __init__(self, own_max: int, of_door: ConnectionLimits) -> None:
        super().__init__()
        self._own_max = own_max
        self._of_door = of_door

    def refusal(self, host: str) -> str:
        """Return why another connection of `host` is refused, or an empty text and count it."""
        if self.count >= self._own_max:
            return LISTENER_FULL
        reason = self._of_door.refusal(host)
        self.count += not reason
        return reason

    def host_refusal(self, host: str) -> str:
        """Return why a connection that was let in without a host is refused, or an empty text and count it."""
        return self._of_door.host_refusal(host)

    def enter_turned(self) -> bool:
        """Count a connection that is refused and may stay until it is told; False where it may not."""
        return self._of_door.enter_turned()

    def release_turned(self) -> None:
        """Forget a connection that was refused and told so."""
        self._of_door.release_turned()

    def release(self, host: str) -> None:
        """Forget a connection that was let in."""
        self.count -= 1
        self._of_door.release(host)

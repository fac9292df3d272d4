"""How fast connections come, and what they share with others: of the address that they come from, and of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_network
from typing import NamedTuple

from gateway.address import is_within, pack_network
from gateway.pacing import ALONE, SharedRates, UserRates
from gateway.rates import Rate, Recent
from gateway.settings.limits import AddressLimitsSettings

DOOR_FAST, LISTENER_FAST, ADDRESS_FAST = "connects_rate", "listener_connects_rate", "address_connects_rate"


class ListenerRates(NamedTuple):
    """What one of our addresses takes and gives a second, all its clients together; 0: any number."""

    connects: int = 0
    messages: int = 0
    sizes: int = 0  # of bodies
    messages_out: int = 0
    sizes_out: int = 0


NO_LIMITS = ListenerRates()


class Connects:
    """How many connections come in a second.

    Args:
        per_s: Let in at most, 0: any number.
    """

    __slots__ = ("_per_s", "_rate")

    def __init__(self, per_s: int = 0) -> None:
        self.use(per_s)

    def use(self, per_s: int) -> None:
        """Go by another number from now on."""
        self._per_s = per_s
        self._rate: Rate | None = None

    def take(self, now_ms: int) -> bool:
        """Count one more, and return True; False where there were too many."""
        if not self._per_s:
            return True
        if self._rate is None:
            self._rate = Rate(self._per_s, now_ms)
        return take_one(self._rate, now_ms)


def take_one(rate: Rate, now_ms: int) -> bool:
    """Take one where there is one; return whether there was."""
    if rate.left(now_ms) < 1:
        return False
    rate.take(1)
    return True


class AddressRates:
    """What addresses may do, of all doors; those that came last are known.

    Args:
        settings: How much.
    """

    def __init__(self, settings: AddressLimitsSettings) -> None:
        self._connects: Recent[Rate] = Recent()
        self._incoming: Recent[UserRates] = Recent()
        self._outgoing: Recent[UserRates] = Recent()
        self.use(settings)

    def use(self, settings: AddressLimitsSettings) -> None:
        """Go by other settings from now on."""
        self._settings = settings
        self._exempt = [ip_network(text) for text in settings.exempt]
        self._is_shared = bool(
            settings.messages_rate or settings.bytes_rate or settings.messages_out_rate or settings.bytes_out_rate
        )

    def may_connect(self, host: str, now_ms: int) -> bool:
        """Count one more connection of a host, and return True; False where there were too many."""
        per_s = self._settings.connects_rate
        if not per_s or not host or is_within(host, self._exempt):
            return True
        rate = self._connects.find(pack_network(host), per_s, partial(Rate, per_s, now_ms))
        return take_one(rate, now_ms)

    def find(self, host: str, now_ms: int) -> SharedRates:
        """Return what connections of a host share."""
        if not self._is_shared or not host or is_within(host, self._exempt):
            return ALONE
        settings, name = self._settings, pack_network(host)
        limits = (settings.messages_rate or -1, settings.bytes_rate or -1)
        out_limits = (settings.messages_out_rate or -1, settings.bytes_out_rate or -1)
        incoming = self._incoming.find(name, limits, partial(UserRates, *limits, now_ms))
        outgoing = self._outgoing.find(name, out_limits, partial(UserRates, *out_limits, now_ms))
        return SharedRates((incoming,), (outgoing,))


class Paces:
    """What counts for the connections of one of a door's addresses.

    Args:
        of_door: Those of all its addresses.
        of_addresses: Those of all doors.
        own: This one's.
        read_ms: Returns the time.
    """

    def __init__(
        self,
        of_door: Connects,
        of_addresses: AddressRates,
        read_ms: Callable[[], int],
        own: ListenerRates = NO_LIMITS,
    ) -> None:
        self._of_door = of_door
        self._of_addresses = of_addresses
        self._read_ms = read_ms
        self._connects = Connects(own.connects)
        self._own = ALONE
        if any(own[1:]):
            now_ms = read_ms()
            incoming = UserRates(own.messages or -1, own.sizes or -1, now_ms)
            self._own = SharedRates((incoming,), (UserRates(own.messages_out or -1, own.sizes_out or -1, now_ms),))

    def at(self, own: ListenerRates) -> Paces:
        """Return those of one of the door's addresses."""
        return Paces(self._of_door, self._of_addresses, self._read_ms, own)

    def refusal(self, host: str) -> str:
        """Return why another connection comes too fast, or an empty text and count it; without a host not to one."""
        now_ms = self._read_ms()
        if not self._of_addresses.may_connect(host, now_ms):
            return ADDRESS_FAST
        if not self._connects.take(now_ms):
            return LISTENER_FAST
        return "" if self._of_door.take(now_ms) else DOOR_FAST

    def host_refusal(self, host: str) -> str:
        """Return why a host's connection that counted to no host comes too fast, or an empty text and count it."""
        return "" if self._of_addresses.may_connect(host, self._read_ms()) else ADDRESS_FAST

    def find(self, host: str) -> SharedRates:
        """Return what a connection of a host shares with others."""
        of_address = self._of_addresses.find(host, self._read_ms())
        if of_address is ALONE:
            return self._own
        return SharedRates(of_address.incoming + self._own.incoming, of_address.outgoing + self._own.outgoing)


class AllPaces:
    """Those of all doors.

    Args:
        settings: Of addresses.
        read_ms: Returns the time.
    """

    def __init__(self, settings: AddressLimitsSettings, read_ms: Callable[[], int]) -> None:
        self._of_addresses = AddressRates(settings)
        self._read_ms = read_ms
        self._connects: dict[str, Connects] = {}

    def of(self, door: str, connects_rate: int) -> Paces:
        """Return those of a door, which lets so many connections in a second, 0 for any number."""
        connects = self._connects.setdefault(door, Connects(connects_rate))
        return Paces(connects, self._of_addresses, self._read_ms)

    def use(self, settings: AddressLimitsSettings, connects_rates: Mapping[str, int]) -> None:
        """Go by other settings from now on, and by what each door says."""
        self._of_addresses.use(settings)
        for door, connects in self._connects.items():
            connects.use(connects_rates[door])

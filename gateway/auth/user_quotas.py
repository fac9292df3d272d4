"""What each user may have and do on all connections together, and what the user has.

What the settings say of a user goes before what was set while the gateway runs, and that before what is for all.
Clients without a name, and parts of the gateway, have no limits here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from core.settings import LIMIT_MAX
from gateway.auth.credentials import OWN_PREFIX
from gateway.pacing import UserRates
from gateway.rates import Rate, Recent
from gateway.settings.models import AuthSettings
from gateway.settings.user_limits import UserLimitsSettings

NO_LIMIT = -1  # as RabbitMQ's limits say it
NONE = UserLimitsSettings()
NAMES = {  # what the API calls each limit: RabbitMQ's names, and names of the same form
    "max-connections": "connections_max",
    "max-channels": "channels_max",
    "messages-rate": "messages_rate",
    "bytes-rate": "bytes_rate",
    "messages-out-rate": "messages_out_rate",
    "bytes-out-rate": "bytes_out_rate",
    "connects-rate": "connects_rate",
}


def find_fault(name: str, value: object) -> str:
    """Return what is wrong with the value of a limit by the API's name, empty where it is a limit; below 0: none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return "must be a whole number"
    if value == 0 and name.endswith("-rate"):
        return "must be at least 1, or below 0 for any number"
    return f"must be at most {LIMIT_MAX}, or below 0 for any number" if value > LIMIT_MAX else ""


class Table(Protocol):
    """A durable table."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""

    def delete(self, key: bytes) -> None:
        """Remove a key, where it is there."""

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all."""


class Quota(NamedTuple):
    """The limits of one user; below 0: none."""

    connections_max: int = NO_LIMIT
    channels_max: int = NO_LIMIT
    messages_rate: int = NO_LIMIT
    bytes_rate: int = NO_LIMIT
    messages_out_rate: int = NO_LIMIT
    bytes_out_rate: int = NO_LIMIT
    connects_rate: int = NO_LIMIT


ANY = Quota()


LOOKED_AT_MAX = 1_024  # connections of one user, or in one virtual host: 0.2 ms at each refusal


class Over(NamedTuple):
    """The limit that one more connection would be over."""

    limit: int
    is_rate: bool = False  # of logins a second, else of connections

    def __str__(self) -> str:
        """Return what an operator is told, in RabbitMQ's form."""
        return f"user connection {'rate ' if self.is_rate else ''}limit ({self.limit}) is reached"


class UserQuotas:
    """The quotas of all users, and the connections that count.

    Args:
        settings: Have those of all, and of some.
        read_ms: Returns the time.
    """

    def __init__(self, settings: AuthSettings, read_ms: Callable[[], int]) -> None:
        self.stored: dict[str, dict[str, int]] = {}  # by user, by the API's names
        self._table: Table | None = None
        self.use(settings)
        self._seats: dict[str, set[object]] = {}
        self._read_ms = read_ms
        self._rates: Recent[UserRates] = Recent()
        self._out_rates: Recent[UserRates] = Recent()
        self._connects: Recent[Rate] = Recent()

    def keep(self, table: Table) -> None:
        """Go by the limits of a table, too, where those are kept that are set while the gateway runs."""
        self._table = table
        self.stored = {user.decode(): json.loads(row) for user, row in list(table.items())}

    def use(self, settings: AuthSettings) -> None:
        """Go by other settings from now on; connections stay."""
        self._settings = settings
        self._is_for_all = settings.user_limits != NONE
        self._limited = {name for name, user in settings.users.items() if user.limits != NONE}

    def set(self, user: str, name: str, value: int) -> None:
        """Set a limit by the API's name, below 0: none; connections stay."""
        said = {**self.stored.pop(user, {}), name: value}
        kept = {limit: number for limit, number in said.items() if number >= 0}
        if kept:
            self.stored[user] = kept
            if self._table is not None:
                self._table.put(user.encode(), json.dumps(kept).encode())
        elif self._table is not None:
            self._table.delete(user.encode())

    def forget(self, user: str) -> None:
        """Take the limits of a deleted user back; a process that is killed before `write_off` has them again."""
        self.stored.pop(user, None)

    def write_off(self, user: str) -> None:
        """Write down that a deleted user has no limits."""
        if user not in self.stored and self._table is not None:
            self._table.delete(user.encode())

    def find(self, user: str) -> Quota:
        """Return what counts for a user now."""
        if not (self._is_for_all or user in self._limited or user in self.stored):
            return ANY
        if not user or user.startswith(OWN_PREFIX):
            return ANY
        own, stored = self._settings.users.get(user), self.stored.get(user, {})
        limits = NONE if own is None else own.limits
        return Quota(*(self._find(field, name, limits, stored) for name, field in NAMES.items()))

    def _find(self, field: str, name: str, own: UserLimitsSettings, stored: Mapping[str, int]) -> int:
        of_user: int = getattr(own, field)
        if of_user:
            return of_user
        if name in stored:
            return stored[name]
        for_all: int = getattr(self._settings.user_limits, field)
        return for_all or NO_LIMIT

    def enter(self, user: str, seat: object) -> Over | None:
        """Count a connection, and return None; or return the limit that it would be over. Harmless when done before."""
        seats = self._seats.get(user, set())
        if seat in seats:
            return None
        quota = self.find(user)
        if is_taken(seats, quota.connections_max):
            return Over(quota.connections_max)
        if quota.connects_rate > 0 and not self._may_connect(user, quota.connects_rate):
            return Over(quota.connects_rate, is_rate=True)
        if user:
            self._seats.setdefault(user, seats).add(seat)
        return None

    def log_in(self, user: str) -> Over | None:
        """Count a login that is no connection, and return None; or return the rate that it would be over."""
        per_s = self.find(user).connects_rate
        return Over(per_s, is_rate=True) if per_s > 0 and not self._may_connect(user, per_s) else None

    def _may_connect(self, user: str, per_s: int) -> bool:
        now_ms = self._read_ms()
        rate = self._connects.find(user, per_s, partial(Rate, per_s, now_ms))
        if rate.left(now_ms) < 1:
            return False
        rate.take(1)
        return True

    def leave(self, user: str, seat: object) -> None:
        """Forget a connection; harmless where it did not count."""
        seats = self._seats.get(user)
        if seats is not None:
            seats.discard(seat)
            if not seats:
                del self._seats[user]

    def find_rates(self, user: str, now_ms: int) -> UserRates | None:
        """Return the rates of what a user publishes, which all its connections share; None where it has none."""
        if (quota := self.find(user)) is ANY:
            return None
        return _find_in(self._rates, user, (quota.messages_rate, quota.bytes_rate), now_ms)

    def find_out_rates(self, user: str, now_ms: int) -> UserRates | None:
        """Return the rates of what a user is sent, which all its connections share; None where it has none."""
        if (quota := self.find(user)) is ANY:
            return None
        return _find_in(self._out_rates, user, (quota.messages_out_rate, quota.bytes_out_rate), now_ms)

    def count(self, user: str, of_seat: Callable[[object], int]) -> int:
        """Return what all connections of a user have together."""
        return sum(map(of_seat, self._seats.get(user, ())))


def is_taken(connections: Collection[object], limit: int) -> bool:
    """Return whether as many connections are open as may be; a limit below 0 is none.

    One whose socket is closed does not count: its end is told in a later turn, and its client may be back before that.
    """
    if not 0 <= limit <= len(connections):
        return False
    return len(connections) > LOOKED_AT_MAX or limit <= sum(map(_has_socket, connections))


def _has_socket(connection: object) -> bool:
    transport = getattr(connection, "transport", None)
    return transport is None or transport.fileno() >= 0


def _find_in(kept: Recent[UserRates], user: str, limits: tuple[int, int], now_ms: int) -> UserRates | None:
    return kept.find(user, limits, partial(UserRates, *limits, now_ms)) if max(limits) >= 0 else None

"""Turns out, after users or settings changed, clients that could not come in any more as they did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from gateway.auth.authenticator import Authenticator
from gateway.auth.credentials import Identity

TURNED_OUT = "its user was deleted or changed, or settings were: it may not come in as it did"  # why a connection ends
EXPIRED = "its token has ended"
LOOKS_A_STEP = 256  # about 0.3 us each


class Visitor(Protocol):
    """A connection whose client has logged in."""

    @property
    def identity(self) -> Identity | None:
        """The login; None before one."""

    def turn_out(self, now_ms: int, reason: str = "") -> None:
        """Close the connection: its user may not come in any more, or an operator says so, for a reason."""


def find_reason(identity: Identity | None, machine_ms: int) -> str:
    """Return why a connection ends whose user may not stay; `machine_ms` is the present by the machine's clock."""
    token = None if identity is None else identity.token
    return EXPIRED if token is not None and token.ends_at_ms <= machine_ms else TURNED_OUT


def recheck(authenticator: Authenticator, protocol: str, visitors: Sequence[Visitor], now_ms: int) -> Iterator[None]:
    """Close, in steps, connections whose users could not come in any more in the way that they did."""
    for number, visitor in enumerate(visitors):
        identity = visitor.identity
        if identity is not None and not authenticator.may_stay(protocol, identity):
            visitor.turn_out(now_ms)
            yield
        elif number % LOOKS_A_STEP == LOOKS_A_STEP - 1:
            yield

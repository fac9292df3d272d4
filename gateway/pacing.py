"""How fast one connection may publish: what comes faster is not read for a while, and no other connection is disturbed.

A rate may be shared by all connections of a user: messages of one connection count for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gateway.rates import Rate

_ANY = 1 << 30


class Pacing:
    """The pace of one connection.

    Args:
        messages: Rates of messages, all of which hold.
        sizes: Rates of bytes of bodies.
    """

    __slots__ = ("_messages", "_sizes", "is_paused", "until_ms")

    def __init__(self, messages: Sequence[Rate], sizes: Sequence[Rate]) -> None:
        self._messages = messages
        self._sizes = sizes
        self.is_paused = False
        self.until_ms = 0

    def allow(self, now_ms: int) -> int:
        """Return how many messages may be taken now, at least one."""
        return max(min((rate.left(now_ms) for rate in self._messages), default=_ANY), 1)

    def allow_bytes(self, now_ms: int) -> int:
        """Return how many bytes of bodies may be taken now, at least one."""
        return max(min((rate.left(now_ms) for rate in self._sizes), default=_ANY), 1)

    def begin(self, now_ms: int) -> Pacing:
        """Begin with a pause where others that share a rate have taken what there was; return itself."""
        self.note(0, 0, now_ms)
        return self

    def note(self, count: int, size: int, now_ms: int) -> bool:
        """Take note of messages that were taken; return whether a pause begins."""
        wait_ms = 0
        for rates, taken in ((self._messages, count), (self._sizes, size)):
            for rate in rates:
                rate.left(now_ms)
                rate.take(taken)
                wait_ms = max(wait_ms, rate.wait_ms())
        self.is_paused = wait_ms > 0
        self.until_ms = now_ms + wait_ms
        return self.is_paused


class UserRates:
    """The rates that all connections of one user share, or of one address.

    Args:
        messages_rate: Messages a second, below 0 for any number.
        bytes_rate: Bytes of bodies a second, below 0 for any number.
        now_ms: The time.
    """

    __slots__ = ("messages", "sizes")

    def __init__(self, messages_rate: int, bytes_rate: int, now_ms: int) -> None:
        self.messages = [Rate(messages_rate, now_ms)] if messages_rate > 0 else []
        self.sizes = [Rate(bytes_rate, now_ms)] if bytes_rate > 0 else []


NONE: tuple[UserRates, ...] = ()


class SharedRates(NamedTuple):
    """The rates that a connection shares with others: of messages it publishes, and of messages it is sent."""

    incoming: tuple[UserRates, ...] = NONE
    outgoing: tuple[UserRates, ...] = NONE


ALONE = SharedRates()


def make_pacing(
    messages_rate: int, bytes_rate: int, of_user: UserRates | None, now_ms: int, *others: UserRates
) -> Pacing | None:
    """Return the pace of a new connection, None where there is no limit; a rate of 0 is none of its own.

    `others` are rates that it shares besides: with all of its address, or of the address that it came to.
    """
    if messages_rate <= 0 and bytes_rate <= 0 and of_user is None and not others:
        return None
    all_rates = [UserRates(messages_rate, bytes_rate, now_ms), *([] if of_user is None else [of_user]), *others]
    messages = [rate for rates in all_rates for rate in rates.messages]
    sizes = [rate for rates in all_rates for rate in rates.sizes]
    return Pacing(messages, sizes) if messages or sizes else None

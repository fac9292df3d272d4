"""Answers of one connection, in the order of its methods: what is durable is answered when it is safe.

Under `flush = async` a message is safe at once, the definition of a queue when its table is committed: a confirm that
follows a declaration waits for that too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from pamqp import base

from gateway.amqp.channel import Channel


class Durability(Protocol):
    """Calls back when what was written is safe: the broker's."""

    def when_stored(self, callback: Callable[[], None]) -> None:
        """When the messages are."""

    def when_durable(self, callback: Callable[[], None]) -> None:
        """When messages and acknowledgements are."""

    def when_kept(self, callback: Callable[[], None]) -> None:
        """When definitions are too."""


class AnswerOutput(Protocol):
    """The connection, as far as answers need it."""

    def is_open(self, channel: Channel) -> bool:
        """Return whether the channel still takes answers."""

    def send_method(self, channel: Channel, method: base.Frame) -> None:
        """Put a method into what is to be sent."""

    def flush(self) -> None:
        """Write what is to be sent."""


class Answers:
    """Sends answers now, or when the disk has what they promise.

    Args:
        durability: The broker's.
        output: The connection.
    """

    __slots__ = ("_durability", "_late", "_output", "_unconfirmed", "_waiting")

    def __init__(self, durability: Durability, output: AnswerOutput) -> None:
        self._durability = durability
        self._output = output
        self._late: list[tuple[Channel, base.Frame | None, Callable[[], None] | None]] = []  # to be handed in
        self._waiting = 0
        self._unconfirmed = 0

    def give(
        self,
        channel: Channel,
        method: base.Frame | None,
        *,
        is_durable: bool = False,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Send `method`, then call `then`; either may be None. Dropped when the channel is gone by then."""
        if method is None and then is None and not is_durable:
            return
        if not is_durable and not self._waiting and not self._late:
            self._give_now(channel, method, then)
        else:
            self._late.append((channel, method, then))

    def hand_in(self) -> None:
        """Have what is to wait answered when all that was done so far is kept; after each piece of work."""
        if self._late:
            self._waiting += 1
            late, self._late = self._late, []
            self._durability.when_kept(partial(self._give_late, late))

    def when_safe(self, callback: Callable[[], None]) -> None:
        """Call back when what was published so far may be confirmed: declarations before it are kept by then."""
        self.hand_in()
        if not self._waiting:
            self._durability.when_stored(callback)
            return
        self._unconfirmed += 1
        self._durability.when_kept(partial(self._confirm_late, callback))

    def _confirm_late(self, callback: Callable[[], None]) -> None:
        self._unconfirmed -= 1
        callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back when all that came was answered, and what was published confirmed."""
        self.hand_in()
        if self._waiting or self._unconfirmed:  # asked again then: an answer may bring another
            self._durability.when_kept(partial(self.when_done, callback))
        else:
            self._durability.when_durable(callback)

    def _give_now(self, channel: Channel, method: base.Frame | None, then: Callable[[], None] | None) -> None:
        if method is not None:
            self._output.send_method(channel, method)
        if then is not None:
            then()

    def _give_late(self, late: list[tuple[Channel, base.Frame | None, Callable[[], None] | None]]) -> None:
        self._waiting -= 1
        for channel, method, then in late:
            if self._output.is_open(channel):
                self._give_now(channel, method, then)
        self._output.flush()
        self.hand_in()

"""Answers of one connection, in the order of its methods: what is durable is answered when it is safe.

Under `flush = async` a message is safe at once, the definition of a queue when its table is committed: a confirm that
follows a declaration waits for that too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from pamqp import base

from core.errors import LmqError
from gateway.amqp.channel import Channel

Outcome = Callable[[LmqError | None], None]


class Durability(Protocol):
    """Calls back when what was written is safe: the broker's."""

    def when_stored(self, ticket: int, then: Outcome) -> None:
        """When the messages of a batch are, or with their error."""

    def when_durable(self, then: Outcome) -> None:
        """When messages and acknowledgements are."""

    def when_kept(self, then: Outcome) -> None:
        """When definitions are too."""


class AnswerOutput(Protocol):
    """The connection, as far as answers need it."""

    def is_open(self, channel: Channel) -> bool:
        """Return whether the channel still takes answers."""

    def send_method(self, channel: Channel, method: base.Frame) -> None:
        """Put a method into what is to be sent."""

    def flush(self) -> None:
        """Write what is to be sent."""

    def fail(self, error: LmqError) -> None:
        """Close the connection: what it was to be answered for is lost."""


class Answers:
    """Sends answers now, or when the disk has what they promise.

    Args:
        durability: The broker's.
        output: The connection.
    """

    __slots__ = (
        "_done", "_durability", "_given", "_handed_in", "_late", "_output", "_prompt", "_stored", "_unconfirmed",
    )  # fmt: skip

    def __init__(self, durability: Durability, output: AnswerOutput) -> None:
        self._durability = durability
        self._output = output
        self._late: list[tuple[Channel, base.Frame | None, Callable[[], None] | None]] = []  # to be handed in
        self._handed_in = 0  # how often answers were, and how often they were given: when kept
        self._given = 0
        self._stored: deque[tuple[int, Outcome, LmqError | None]] = deque()  # until what was handed in is given
        self._unconfirmed = 0
        self._done: Callable[[], None] | None = None
        self._prompt: Callable[[], None] | None = None

    def are_prompt(self) -> bool:
        """Return whether nothing is left to be answered before what comes now."""
        return self._given == self._handed_in and not self._late

    def when_prompt(self, then: Callable[[], None]) -> None:
        """Call the last `then` back, once, when all that was to wait is answered, or cannot be any more."""
        self._prompt = then

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
        if not is_durable and self.are_prompt():
            self._give_now(channel, method, then)
        else:
            self._late.append((channel, method, then))

    def hand_in(self) -> None:
        """Have what is to wait answered when all that was done so far is kept; after each piece of work."""
        if self._late:
            self._handed_in += 1
            late, self._late = self._late, []
            self._durability.when_kept(partial(self._give_late, late))

    def when_safe(self, ticket: int, then: Outcome) -> None:
        """Call back when a batch may be confirmed, or is lost: declarations before it are kept by then.

        Outcomes come in the order of the calls.
        """
        self.hand_in()
        if self._given == self._handed_in and not self._stored:
            self._durability.when_stored(ticket, then)
        else:
            self._unconfirmed += 1
            self._durability.when_stored(ticket, partial(self._note_stored, self._handed_in, then))

    def _note_stored(self, handed_in: int, then: Outcome, error: LmqError | None) -> None:
        self._stored.append((handed_in, then, error))
        self._confirm_given()

    def _confirm_given(self) -> None:
        """Tell the outcomes that waited for what was given until now."""
        while self._stored and self._stored[0][0] <= self._given:
            _, then, error = self._stored.popleft()
            self._unconfirmed -= 1
            then(error)
        self._maybe_done()

    def when_done(self, then: Callable[[], None]) -> None:
        """Call back when all that came was answered, and what was published confirmed, or nothing can be any more."""
        self._done = then
        self.hand_in()
        self._maybe_done()

    def _maybe_done(self) -> None:
        if self._done is not None and self._given == self._handed_in and not self._unconfirmed:
            then, self._done = self._done, None
            self._durability.when_durable(partial(_call, then))

    def _give_now(self, channel: Channel, method: base.Frame | None, then: Callable[[], None] | None) -> None:
        if method is not None:
            self._output.send_method(channel, method)
        if then is not None:
            then()

    def _give_late(
        self, late: list[tuple[Channel, base.Frame | None, Callable[[], None] | None]], error: LmqError | None
    ) -> None:
        self._given += 1
        if error is None:
            for channel, method, then in late:
                if self._output.is_open(channel):
                    self._give_now(channel, method, then)
            self._output.flush()
            self.hand_in()
        else:
            self._output.fail(error)
        self._confirm_given()
        if self._prompt is not None and (error is not None or self.are_prompt()):
            then, self._prompt = self._prompt, None
            then()


def _call(then: Callable[[], None], error: LmqError | None) -> None:
    del error  # outcomes of their own have told of it
    then()

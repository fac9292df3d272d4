"""What a method that defines or removes something is answered with."""

from __future__ import annotations

from collections.abc import Callable

from pamqp import base


class Answer:
    """What a method is answered with; `is_durable`: not before it is safe on disk; `method` None: with nothing.

    `then` is called once it was sent. `again`: the method is not done yet, and this one is to be tried next.
    """

    __slots__ = ("again", "is_durable", "method", "then")

    def __init__(
        self,
        method: base.Frame | None,
        *,
        is_durable: bool,
        then: Callable[[], None] | None = None,
        again: base.Frame | None = None,
    ) -> None:
        self.method = method
        self.is_durable = is_durable
        self.then = then
        self.again = again

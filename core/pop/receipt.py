"""What proves that a message is with a consumer, until the moment that it is hidden until."""

from __future__ import annotations

from typing import NamedTuple


class Receipt(NamedTuple):
    """One time that one message was taken.

    It is stale once the message is done, shown again, or taken again: the number of attempts is another then. A restart
    of the gateway leaves it as it is.

    Args:
        number: The pop queue's. It gets another one when it is dropped, goes on from elsewhere, or lost messages.
        queue_offset: The message.
        attempt: How often it had been taken then, from 1.
    """

    number: int
    queue_offset: int
    attempt: int

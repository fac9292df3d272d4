"""What a load is to do."""

from __future__ import annotations

from typing import NamedTuple


class Plan(NamedTuple):
    """A load: publishers, consumers, and what goes between them."""

    name: str  # the topic or queue
    publishers: int
    consumers: int
    messages: int  # of messages that are published, or, without publishers, that are to come
    size: int = 0
    qos: int = 1
    rate: float | None = None  # of all publishers together
    window: int = 200  # unanswered, of each publisher
    exchange: str = ""
    seconds: float | None = None

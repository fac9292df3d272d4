"""What operators are told of the light queues that a topic reaches."""

from __future__ import annotations

from typing import NamedTuple


class ExplainedQueue(NamedTuple):
    """One light queue that a topic reaches."""

    name: bytes
    filters: dict[bytes, int]  # that lead there, each with how often it is bound: at MQTT once for each session
    readers: int  # clients that wait for its messages now
    max_offset: int  # of the message that would be published

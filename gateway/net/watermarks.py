"""What all doors together take: newcomers are refused while there is more, whatever a door has of its own."""

from __future__ import annotations

CONNECTIONS_FULL = "limits_connections_max"
MEMORY_LOW = "memory"


class Watermarks:
    """The marks, and whether the memory is above its own.

    Args:
        connections_max: Open at once; 0: any number.
    """

    __slots__ = ("connections_max", "is_memory_low")

    def __init__(self, connections_max: int = 0) -> None:
        self.connections_max = connections_max
        self.is_memory_low = False

    def is_full(self, count: int) -> bool:
        """Return whether there are as many connections as there may be."""
        return 0 < self.connections_max <= count

    def refusal(self, count: int) -> str:
        """Return why one more connection than `count` is refused, empty where it is not."""
        if self.is_memory_low:
            return MEMORY_LOW
        return CONNECTIONS_FULL if self.is_full(count) else ""

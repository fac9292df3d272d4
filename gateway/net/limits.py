"""How many connections a door lets in, in all and from one address."""

from __future__ import annotations

from gateway.net.descriptors import Capacity


class ConnectionLimits:
    """Counts the open connections of one door. A maximum of 0 means as many as all doors share by `capacity`."""

    __slots__ = ("_by_host", "_capacity", "_count_max", "_host_count_max", "count")

    def __init__(self, count_max: int = 0, host_count_max: int = 0, capacity: Capacity | None = None) -> None:
        self._capacity = capacity
        self._count_max = count_max
        self._host_count_max = host_count_max
        self._by_host: dict[str, int] = {}
        self.count = 0

    def reload(self, count_max: int, host_count_max: int) -> None:
        """Go by other maxima from now on; who is in stays."""
        self._count_max = count_max
        self._host_count_max = host_count_max

    def refusal(self, host: str) -> str:
        """Return why another connection of `host` is refused, or an empty text and count it."""
        if self._count_max and self.count >= self._count_max:
            return "connections_max"
        open_count = self._by_host.get(host, 0)
        if self._host_count_max and open_count >= self._host_count_max:
            return "host_connections_max"
        if self._capacity is not None and not self._capacity.enter():
            return "descriptors"
        self._by_host[host] = open_count + 1  # without a maximum too: one may be set while they are open
        self.count += 1
        return ""

    def release(self, host: str) -> None:
        """Forget a connection of `host` that was let in."""
        self.count -= 1
        if self._capacity is not None:
            self._capacity.leave()
        left = self._by_host.get(host, 0) - 1
        if left > 0:
            self._by_host[host] = left
        else:
            self._by_host.pop(host, None)

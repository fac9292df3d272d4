"""How many connections a door lets in, in all and from one address."""

from __future__ import annotations

from gateway.net.descriptors import Capacity

HOST_FULL = "host_connections_max"


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
        """Return why another connection of `host` is refused, or an empty text and count it.

        Without a host it counts to no host; `host_refusal` counts it later.
        """
        if self._count_max and self.count >= self._count_max:
            return "connections_max"
        if host and self._is_full(host):
            return HOST_FULL
        if self._capacity is not None and not self._capacity.enter():
            return "descriptors"
        if host:
            self._add(host)
        self.count += 1
        return ""

    def host_refusal(self, host: str) -> str:
        """Return why a connection that was let in without a host is refused, or an empty text and count it."""
        if self._is_full(host):
            return HOST_FULL
        self._add(host)
        return ""

    def _is_full(self, host: str) -> bool:
        return bool(self._host_count_max) and self._by_host.get(host, 0) >= self._host_count_max

    def _add(self, host: str) -> None:
        self._by_host[host] = self._by_host.get(host, 0) + 1  # without a maximum too: one may be set meanwhile

    def release(self, host: str) -> None:
        """Forget a connection that was let in and counted to `host`, or without one."""
        self.count -= 1
        if self._capacity is not None:
            self._capacity.leave()
        left = self._by_host.get(host, 0) - 1
        if left > 0:
            self._by_host[host] = left
        else:
            self._by_host.pop(host, None)

"""How many connections a door lets in, in all and from one address."""

from __future__ import annotations

from gateway.net.descriptors import Capacity

LISTENER_FULL = "listener_connections_max"
HOST_FULL = "host_connections_max"
TURNED_MAX = 64  # at once


class ConnectionLimits:
    """Counts the open connections of one door. A maximum of 0 means as many as all doors share by `capacity`."""

    __slots__ = ("_by_host", "_capacity", "_count_max", "_host_count_max", "count", "turned_count")

    def __init__(self, count_max: int = 0, host_count_max: int = 0, capacity: Capacity | None = None) -> None:
        self._capacity = capacity
        self._count_max = count_max
        self._host_count_max = host_count_max
        self._by_host: dict[str, int] = {}
        self.count = 0
        self.turned_count = 0  # refused, and being told so

    def reload(self, count_max: int, host_count_max: int) -> None:
        """Go by other maxima from now on; open connections stay."""
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
        if self._capacity is not None:
            reason = self._capacity.watermarks.refusal(self._capacity.count)
            if reason or not self._capacity.enter():
                return reason or "descriptors"
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

    def enter_turned(self) -> bool:
        """Count a connection that is refused and may stay until it is told; False where it may not."""
        if self.turned_count >= TURNED_MAX or (self._capacity is not None and not self._capacity.enter()):
            return False
        self.turned_count += 1
        return True

    def release_turned(self) -> None:
        """Forget a connection that was refused and told so."""
        self.turned_count -= 1
        if self._capacity is not None:
            self._capacity.leave()

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


class ListenerLimits(ConnectionLimits):
    """The same for one address of a door, which has a maximum of its own; all else is asked of the door's limits."""

    __slots__ = ("_of_door", "_own_max")

    def __init__(self, own_max: int, of_door: ConnectionLimits) -> None:
        super().__init__()
        self._own_max = own_max
        self._of_door = of_door

    def refusal(self, host: str) -> str:
        """Return why another connection of `host` is refused, or an empty text and count it."""
        if self.count >= self._own_max:
            return LISTENER_FULL
        reason = self._of_door.refusal(host)
        self.count += not reason
        return reason

    def host_refusal(self, host: str) -> str:
        """Return why a connection that was let in without a host is refused, or an empty text and count it."""
        return self._of_door.host_refusal(host)

    def enter_turned(self) -> bool:
        """Count a connection that is refused and may stay until it is told; False where it may not."""
        return self._of_door.enter_turned()

    def release_turned(self) -> None:
        """Forget a connection that was refused and told so."""
        self._of_door.release_turned()

    def release(self, host: str) -> None:
        """Forget a connection that was let in."""
        self.count -= 1
        self._of_door.release(host)

"""What bridges are subscribed to at other brokers, written down: what they no more carry is unsubscribed there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable

from core.broker import Broker
from core.errors import LmqError

TABLE = "bridge_filters"


class RemoteFilters:
    """The filters of all bridges of a gateway, each bridge's at the broker that it leads to."""

    def __init__(self, broker: Broker) -> None:
        self._table = broker.table(TABLE)
        self._when_kept = broker.when_kept

    def find(self, bridge: str, place: str) -> set[str]:
        """Return what a bridge may be subscribed to at `place`: none where it was at another one last."""
        found = self._table.get(bridge.encode())
        row = {} if found is None else json.loads(found)
        return set(row["filters"]) if row.get("place") == place else set()

    async def keep(self, bridge: str, place: str, filters: Iterable[str]) -> None:
        """Note what a bridge may be subscribed to; return when that is on disk.

        Raises:
            LmqError: The disk keeps nothing any more.
        """
        key, named = bridge.encode(), sorted(filters)
        row = json.dumps({"place": place, "filters": named}).encode() if named else None
        if row != self._table.get(key):
            if row is None:
                self._table.delete(key)
            else:
                self._table.put(key, row)
            kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._when_kept(_told(kept))
            await kept

    def forget_others(self, bridges: Iterable[str]) -> None:
        """Forget what is known of all bridges but these."""
        names = {name.encode() for name in bridges}
        for key, _ in list(self._table.items()):
            if key not in names:
                self._table.delete(key)


def _told(future: asyncio.Future[None]) -> Callable[[LmqError | None], None]:
    def tell(error: LmqError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    return tell

"""What a connection reports: control packets, and runs of equal packets as one event each.

A run lies decoded in columns of its own. The taker of the event may keep it for as long as it likes, and gives the
columns back with `release` for the next run; without it they are freed with the event, and the next run is given new
ones.
"""

from __future__ import annotations

from gateway.mqtt.columns import RUN_COUNT_MAX, RunColumns
from gateway.mqtt.packets import Packet


class RunPool:
    """Columns of a door in which no run lies: for one run, as mostly each is done before the next comes."""

    __slots__ = ("_capacity", "_free")

    def __init__(self, capacity: int = RUN_COUNT_MAX) -> None:
        self._capacity = capacity
        self._free: RunColumns | None = None

    def show(self) -> RunColumns:
        """Return the columns that `take` would return; they stay here."""
        free = self._free
        if free is None:
            free = self._free = RunColumns(self._capacity)
        return free

    def take(self) -> RunColumns:
        """Return columns for a run."""
        free, self._free = self._free, None
        return RunColumns(self._capacity) if free is None else free

    def give_back(self, columns: RunColumns) -> None:
        """Take columns back in which no run lies any more."""
        self._free = columns


class PublishRun:
    """A run of PUBLISH packets: `columns.batch` holds the messages, `columns.body_bytes` is the size of their bodies.

    `denied` is for the topics that the client may not publish to.
    """

    __slots__ = ("columns", "denied", "pool")

    columns: RunColumns
    denied: list[bytes] | None
    pool: RunPool | None  # where the columns go back to, None once they are there

    def release(self) -> None:
        """Let the columns be used again."""
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.give_back(self.columns)


class AckRun:
    """A run of PUBACK, PUBREC, PUBREL or PUBCOMP packets, as `columns.ack_type` says.

    They are the first `columns.ack_count` of `columns.packet_ids`.
    """

    __slots__ = ("columns", "pool")

    columns: RunColumns
    pool: RunPool | None  # as of a `PublishRun`

    def release(self) -> None:
        """Let the columns be used again."""
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.give_back(self.columns)


def make_publish_run(pool: RunPool) -> PublishRun:
    """Return an event with the columns that `pool` shows, in which a run lies now."""
    run = PublishRun.__new__(PublishRun)  # a call with arguments takes longer than all the rest of an event
    run.columns = pool.take()
    run.denied = None
    run.pool = pool
    return run


def make_ack_run(pool: RunPool) -> AckRun:
    """Return an event with the columns that `pool` shows, in which a run lies now."""
    run = AckRun.__new__(AckRun)
    run.columns = pool.take()
    run.pool = pool
    return run


class PingRun:
    """A run of PINGREQ packets; the connection has the answers."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count


Event = Packet | PublishRun | AckRun | PingRun

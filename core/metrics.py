"""Plain counters of the whole product; the data path adds to them by the batch, the admin door reads them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Sequence
from typing import NamedTuple

# Powers of two, in ms: a disk with a write cache takes 0.25 ms, a stalled one a second.
SYNC_BUCKETS_MS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)
# Powers of four: from the loop's millisecond to a minute, after which a timer is not late but stands.
LATENESS_BUCKETS_MS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0)


class DoorMetrics:
    """What went through one door. Bytes are those of bodies.

    `connections`, `sessions` and `publishers_held` are of now; all others only go up.
    """

    __slots__ = (
        "acknowledged",
        "bytes_in",
        "bytes_out",
        "channel_changes",
        "connections",
        "connections_total",
        "dead_letters",
        "dropped",
        "holds",
        "logins",
        "messages_in",
        "messages_out",
        "name",
        "publishers_held",
        "redelivered",
        "refused",
        "sessions",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.acknowledged = 0  # messages by MQTT's subscribers, at QoS 1 and 2
        self.messages_in = 0
        self.messages_out = 0
        self.redelivered = 0  # of those handed out: clients had, or may have had, them before
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections = 0
        self.connections_total = 0
        self.channel_changes = 0  # times that a channel, or a consumer of one, came or went
        self.sessions = 0
        self.publishers_held = 0  # while the disk is low on room
        self.holds = 0  # how often one was
        self.refused: dict[str, int] = {}  # reason -> packets, channels or connections
        self.dropped: dict[str, int] = {}  # reason -> messages
        self.logins: dict[str, int] = {}  # outcome -> logins
        self.dead_letters: dict[str, int] = {}  # reason -> messages

    def refuse(self, reason: str, count: int = 1) -> None:
        """Count what a peer sent and did not get: a short reason in lower case, words joined by underscores."""
        self.refused[reason] = self.refused.get(reason, 0) + count

    def drop(self, reason: str, count: int = 1) -> None:
        """Count messages that were taken in and not passed on, by the same kind of reason."""
        self.dropped[reason] = self.dropped.get(reason, 0) + count

    def log_in(self, outcome: str) -> None:
        """Count a login by what became of it."""
        self.logins[outcome] = self.logins.get(outcome, 0) + 1

    def bury(self, reason: str, count: int = 1) -> None:
        """Count messages that were stored as dead letters, by the reason of their death."""
        if count:
            self.dead_letters[reason] = self.dead_letters.get(reason, 0) + count


class PopCounts(NamedTuple):
    """What happened to messages of all pop queues since the start."""

    taken: int  # for the first time
    taken_again: int
    done: int
    given_back: int  # to be taken again, at once or at a moment
    timed_out: int  # shown again because their moment had come


class TransactionMetrics:
    """How transactions of RocketMQ's producers went; `pending` is of now, the others only go up."""

    __slots__ = ("checks", "commits", "given_up", "pending", "rollbacks", "unasked")

    def __init__(self) -> None:
        self.pending = 0  # half messages that wait for their end
        self.commits = 0
        self.rollbacks = 0
        self.given_up = 0  # ended by nobody
        self.checks = 0  # questions to producers
        self.unasked = 0  # that no producer was there for


class Durations:
    """How long something took, each time: a histogram over `bounds_ms`, ascending, and one bucket above."""

    __slots__ = ("bounds_ms", "bucket_counts", "count", "total_ms")

    def __init__(self, bounds_ms: Sequence[float]) -> None:
        self.bounds_ms = bounds_ms
        self.bucket_counts = [0] * (len(bounds_ms) + 1)
        self.count = 0
        self.total_ms = 0.0

    def add(self, took_ms: float) -> None:
        """Count one."""
        self.bucket_counts[bisect_left(self.bounds_ms, took_ms)] += 1
        self.count += 1
        self.total_ms += took_ms


class SyncMetrics(Durations):
    """How long syncs to disk took, and how many the disk refused."""

    __slots__ = ("failed",)

    def __init__(self) -> None:
        super().__init__(SYNC_BUCKETS_MS)
        self.failed = 0


class LoopMetrics:
    """How long the loop was held at most since the start, in nanoseconds.

    `share_ns_max`: by one connection, before the others had their turn; `turn_ns_max`: by all readers together.
    """

    __slots__ = ("share_ns_max", "turn_ns_max")

    def __init__(self) -> None:
        self.share_ns_max = 0
        self.turn_ns_max = 0


class BridgeMetrics:
    """What one bridge carried to another broker and from there; `is_connected` is of now."""

    __slots__ = (
        *("address", "cause", "connects", "dropped", "failures", "is_connected"),
        *("messages_in", "messages_out", "name"),
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = ""  # of the other broker
        self.is_connected = False
        self.cause = ""  # why it broke or was not made, while it does not stand
        self.connects = 0
        self.failures = 0  # connections that ended, or did not come about
        self.messages_in = 0  # stored here
        self.messages_out = 0  # taken there
        self.dropped: dict[str, int] = {}  # reason -> messages

    def drop(self, reason: str) -> None:
        """Count a message that was not carried, by a short reason."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


class Metrics:
    """What doors, bridges and syncs count; the store counts for itself. Doors are made on first use, bridges too."""

    def __init__(self) -> None:
        self.doors: dict[str, DoorMetrics] = {}
        self.bridges: dict[str, BridgeMetrics] = {}
        self.sync = SyncMetrics()
        self.lateness = Durations(LATENESS_BUCKETS_MS)  # of messages that waited for their moment
        self.transactions = TransactionMetrics()
        self.loop = LoopMetrics()

    def holds(self) -> int:
        """Return how often publishers were held back, of all doors."""
        holds = [door.holds for door in self.doors.values()]
        return sum(holds)

    def bridge(self, name: str) -> BridgeMetrics:
        """Return the counters of the bridge `name`."""
        return self.bridges.setdefault(name, BridgeMetrics(name))

    def forget_bridges(self, names: Container[str]) -> None:
        """Forget the counters of all bridges but these."""
        self.bridges = {name: found for name, found in self.bridges.items() if name in names}

    def door(self, name: str) -> DoorMetrics:
        """Return the counters of the door `name`."""
        found = self.doors.get(name)
        if found is None:
            found = self.doors[name] = DoorMetrics(name)
        return found

"""Counts which clients connect most often lately, so that one that does so in a loop has a name; in bounded memory.

Connections are counted by address, logins by client, user and address, each with its outcome. The count is that of
Misra and Gries: when there are KEYS_MAX others, all of them count one less. So each number is too low by
`missed_max` at most, and whatever is more than one in KEYS_MAX of all that came is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

WINDOW_S = 30.0  # two of them are looked at: the last half minute to minute
KEYS_MAX = 256  # of each kind in each window: a megabyte at most, where all names are as long as the log has them
CONNECTED = "connected"


class Arrival(NamedTuple):
    """A connection or a login, and its outcome; `client` and `user` are empty for a connection."""

    door: str
    host: str
    client: str
    user: str
    outcome: str  # as the log has it


Fields = tuple[str, str, str, str, str]  # of an Arrival, which is dearer to make than to count


class Tally:
    """The keys that came most often since it was made."""

    __slots__ = ("counts", "missed_max")

    def __init__(self) -> None:
        self.counts: dict[Fields, int] = {}
        self.missed_max = 0  # by so much each count is too low at most

    def note(self, arrival: Fields) -> None:
        """Count one more. It costs the same each time on average: what is taken away was counted before."""
        counts = self.counts
        before = counts.get(arrival)
        if before is not None:
            counts[arrival] = before + 1
        elif len(counts) < KEYS_MAX:
            counts[arrival] = 1
        else:
            self.missed_max += 1
            self.counts = {key: count - 1 for key, count in counts.items() if count > 1}


class Window:
    """What came from one moment on."""

    __slots__ = ("began_s", "connections", "logins")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.connections, self.logins = Tally(), Tally()


class Churn:
    """Connections and logins of the last 30 to 60 seconds.

    Args:
        read_s: A clock that never goes back.
    """

    __slots__ = ("_before", "_now", "_read_s")

    def __init__(self, read_s: Callable[[], float] = time.monotonic) -> None:
        self._read_s = read_s
        self._before = self._now = Window(read_s())

    def note_connection(self, door: str, peer: str, outcome: str = CONNECTED) -> None:
        """Count a connection that was let in, or turned away; `peer` is HOST or HOST:PORT."""
        self._find_window().connections.note((door, host_of(peer), "", "", outcome))

    def note_login(self, door: str, peer: str, client: str, user: str, outcome: str) -> None:
        """Count a login; the names are cut by the caller, as the log has them."""
        self._find_window().logins.note((door, host_of(peer), client, user, outcome))

    def within_s(self) -> float:
        """Return how many seconds are looked at."""
        self._find_window()
        return self._read_s() - self._before.began_s

    def find_connections(self, count: int) -> tuple[list[tuple[Arrival, int]], int]:
        """Return the most frequent connections, that which came most often first, and how much each may be too low."""
        now, before = self._find_window(), self._before
        return _most(before.connections, now.connections, count)

    def find_logins(self, count: int) -> tuple[list[tuple[Arrival, int]], int]:
        """Return the most frequent logins, in the same way."""
        now, before = self._find_window(), self._before
        return _most(before.logins, now.logins, count)

    def _find_window(self) -> Window:
        """Return the window of this moment."""
        now_s, window = self._read_s(), self._now
        passed_s = now_s - window.began_s
        if passed_s >= WINDOW_S:
            self._now = Window(now_s)
            self._before = window if passed_s < 2 * WINDOW_S else self._now
        return self._now


def host_of(peer: str) -> str:
    """Return the host of HOST:PORT or [HOST]:PORT, or what is a host alone."""
    if peer.startswith("["):
        return peer[1:].partition("]")[0]
    return peer.partition(":")[0] if peer.count(":") == 1 else peer


def _most(before: Tally, now: Tally, count: int) -> tuple[list[tuple[Arrival, int]], int]:
    if before is now:
        total, missed = now.counts, now.missed_max
    else:
        total, missed = {**before.counts}, before.missed_max + now.missed_max
        for arrival, came in now.counts.items():
            total[arrival] = total.get(arrival, 0) + came
    most = sorted(total.items(), key=lambda one: (-one[1], one[0]))
    return [(Arrival(*fields), came) for fields, came in most[:count]], missed

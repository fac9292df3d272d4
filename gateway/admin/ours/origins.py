"""Where a dead letter died first, as far as the gateway can tell: publishers write headers, too.

Believed is what the gateway writes, all of it in agreement, and only where the queues as they stand now send their
dead letters that way.
"""

from __future__ import annotations

from pamqp.common import FieldTable

from gateway.admin.ours.dead_letters import find_way
from gateway.amqp.queues import VirtualHost

DEATHS = "x-death"
UNKNOWN = "the gateway cannot tell where they died: give a destination"
_SAID = ("queue", "reason", "exchange")
_FIRST = tuple(f"x-first-death-{name}" for name in _SAID)
_LAST = tuple(f"x-last-death-{name}" for name in _SAID)
_OWN = frozenset({DEATHS, *_FIRST, *_LAST, "x-delivery-count"})


class Origins:
    """Tells where letters go back to from one queue.

    Args:
        vhost: Where it is.
        source: Its name.
    """

    def __init__(self, vhost: VirtualHost, source: str) -> None:
        self._vhost = vhost
        self._source = source
        self._reached: dict[tuple[str, str], list[str]] = {}
        self._from: dict[str, set[str]] = {}  # by queue: where its letters come to, also by way of others

    def find(self, headers: FieldTable) -> str | None:
        """Return the queue that a letter with these headers died in first; None: that cannot be told."""
        deaths = read_deaths(headers)
        first, last = (tuple(headers.get(name) for name in names) for names in (_FIRST, _LAST))
        if not deaths or deaths[0] != last or first not in deaths:
            return None
        died_in, came_from = first[0], last[0]
        if not isinstance(died_in, str) or not isinstance(came_from, str):
            return None
        if self._vhost.find(died_in) is None:
            return died_in  # nothing goes there, but it is told
        return died_in if self._leads_here(died_in) and self._source in self._next(came_from) else None

    def _leads_here(self, queue: str) -> bool:
        """Return whether letters of a queue come to the source, also by way of other queues that they die in."""
        found = self._from.get(queue)
        if found is None:
            found, todo = set(), [queue]
            for one in todo:
                fresh = [name for name in self._next(one) if name not in found]
                found.update(fresh)
                todo += fresh
            self._from[queue] = found
        return self._source in found

    def _next(self, name: str) -> list[str]:
        queue = self._vhost.find(name)
        return find_way(self._vhost, queue, self._reached) if queue is not None and queue.has_dead_letters else []


def read_deaths(headers: FieldTable) -> list[tuple[object, ...]]:
    """Return queue, reason and exchange of each death, the latest first; none where they are not as they should be."""
    said = headers.get(DEATHS)
    if not isinstance(said, list):
        return []
    deaths: list[tuple[object, ...]] = [tuple(one.get(name) for name in _SAID) for one in said if isinstance(one, dict)]
    return deaths if len(deaths) == len(said) else []


def strip_deaths(headers: FieldTable) -> FieldTable:
    """Return headers without those that the gateway puts on dead letters; the application's stay."""
    return {name: value for name, value in headers.items() if name not in _OWN}

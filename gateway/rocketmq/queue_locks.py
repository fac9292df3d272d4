"""Locks of queues, by which clients that consume in order keep the others of their group away.

Names in locks are what peers say, so there are bounds for how long and how many they are.
"""

from __future__ import annotations

LOCK_MS = 60_000  # a lock that is not renewed for so long may be taken by another client
LOCKS_MAX = 100_000  # of all groups, a few hundred bytes each; then no other queue is locked until one is given back
LOOK_MS = 10_000  # between two looks for locks that ran out, 0.2 us each
NAME_CHARS_MAX = 1_024  # of a group, a client or a topic; clients take no longer ones

Queue = tuple[str, int]  # topic and number


class QueueLocks:
    """Those of all groups.

    Args:
        count_max: So many of them.
    """

    def __init__(self, count_max: int = LOCKS_MAX) -> None:
        self._count_max = count_max
        self._groups: dict[str, dict[Queue, tuple[str, int]]] = {}  # group -> queue -> client, until
        self._count = 0
        self._looked_at_ms = 0

    def __len__(self) -> int:
        """Return how many are kept, with those that ran out lately."""
        return self._count

    def take(self, group: str, client: str, queue: Queue, now_ms: int) -> bool:
        """Lock a queue of a group for a client, or renew that; False where another has it, or there is no room."""
        known = self._groups.get(group, {}).get(queue)
        if known is None:
            if max(map(len, (group, client, queue[0]))) > NAME_CHARS_MAX or not self._has_room(now_ms):
                return False
            self._count += 1
        elif known[0] != client and known[1] > now_ms:
            return False
        self._groups.setdefault(group, {})[queue] = (client, now_ms + LOCK_MS)
        return True

    def give_back(self, group: str, client: str, queue: Queue) -> None:
        """Let others have a queue; harmless where the client does not hold it."""
        locks = self._groups.get(group, {})
        if locks.get(queue, ("", 0))[0] == client and queue in locks:
            del locks[queue]
            self._count -= 1
            if not locks:
                del self._groups[group]

    def is_held(self, group: str, now_ms: int) -> bool:
        """Return whether a member of the group has a queue locked: the group consumes in order."""
        return any(until_ms > now_ms for _, until_ms in self._groups.get(group, {}).values())

    def _has_room(self, now_ms: int) -> bool:
        if now_ms - self._looked_at_ms >= LOOK_MS:
            self._looked_at_ms = now_ms
            self._forget_old(now_ms)
        return self._count < self._count_max

    def _forget_old(self, now_ms: int) -> None:
        for group, locks in list(self._groups.items()):
            kept = {queue: lock for queue, lock in locks.items() if lock[1] > now_ms}
            self._count -= len(locks) - len(kept)
            if kept:
                self._groups[group] = kept
            else:
                del self._groups[group]

"""Which member of a group gets a message, where its topic or its publisher decides, and what waits for members.

A message is its member's from the moment it is taken, so that the order of a topic or a publisher holds while the
member has no room. At most PENDING_MAX of a group wait so, and then the group takes no more. A member that has taken
nothing for STALLED_MS by then is passed by: its waiting messages, and new ones of its topics, go to others until it
has room again.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from typing import Protocol

from core.message import StoredBatch
from core.properties import CLIENT
from gateway.mqtt.session import Subscription

ROUND_ROBIN = "round_robin"
STICKY = "sticky"
HASH_CLIENT_ID = "hash_client_id"
HASH_TOPIC = "hash_topic"
HASHES = frozenset((HASH_CLIENT_ID, HASH_TOPIC))
PENDING_MAX = 4_096  # some 150 KB; with fewer a short pause of one member would hold up the group sooner
STALLED_MS = 5_000  # chosen: longer than a pause of a client that works, shorter than a keep-alive
_CLIENT_FIELD = CLIENT + b"\x01"


def find_key(batch: StoredBatch, i: int, strategy: str) -> int:
    """Return a number that is the same for all messages of one topic, or of one publisher."""
    if strategy == HASH_TOPIC:
        return zlib.crc32(bytes(batch.buf[batch.topic_start[i] : batch.topic_end[i]]))
    properties = bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
    for field in properties.split(b"\x02"):
        if field.startswith(_CLIENT_FIELD):
            return zlib.crc32(field)
    return 0  # its publisher is not in the record: all such go to one member


class Strategy(Protocol):
    """How the door's groups choose among their members: one of these names, which a reload may change."""

    strategy: str


class Assignment:
    """Queue offsets that were taken for members and not sent yet."""

    def __init__(self) -> None:
        self.count = 0
        self._pending: dict[Subscription, list[int]] = {}
        self._since_ms: dict[Subscription, int] = {}  # when it took something last, or something began to wait for it
        self._passed_by: set[Subscription] = set()

    @property
    def room(self) -> int:
        """How many more may wait."""
        return PENDING_MAX - self.count

    def choose(self, members: Sequence[Subscription], key: int) -> Subscription:
        """Return the member that a message of this key is for."""
        member = members[key % len(members)]
        if member not in self._passed_by:
            return member
        others = [one for one in members if one not in self._passed_by]
        return others[key // len(members) % len(others)] if others else member

    def add(self, member: Subscription, queue_offset: int, now_ms: int) -> None:
        """Let a message wait for a member."""
        self._since_ms.setdefault(member, now_ms)
        self._pending.setdefault(member, []).append(queue_offset)
        self.count += 1

    def peek(self, member: Subscription, count_max: int) -> array[int]:
        """Return the first that wait for a member, in the order of the queue."""
        pending = self._pending.get(member)
        if not pending or count_max <= 0:
            return array("q")
        pending.sort()
        return array("q", pending[:count_max])

    def drop_first(self, member: Subscription, count: int, now_ms: int) -> None:
        """Let go of the first that waited for a member: they are sent, or gone."""
        self._since_ms[member] = now_ms
        del self._pending[member][:count]
        self.count -= count
        if not self._pending[member]:
            del self._pending[member], self._since_ms[member]

    def take(self, member: Subscription) -> list[int]:
        """Let go of all that wait for a member; return them."""
        pending = self._pending.pop(member, [])
        self._since_ms.pop(member, None)
        self.count -= len(pending)
        return pending

    def is_stalled(self, member: Subscription, now_ms: int) -> bool:
        """Return whether messages wait for a member that has taken none for a while."""
        return now_ms - self._since_ms.get(member, now_ms) >= STALLED_MS

    def pass_by(self, member: Subscription) -> list[int]:
        """Give what is a member's to the others from now on; return what waits for it."""
        self._passed_by.add(member)
        return self.take(member)

    def take_back(self, member: Subscription) -> None:
        """Let a member have again what is its own; harmless where it has."""
        self._passed_by.discard(member)

    def take_all(self) -> list[int]:
        """Let go of all; return them."""
        return [offset for member in list(self._pending) for offset in self.take(member)]

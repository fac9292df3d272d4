"""How the members of a group share out a topic's queues.

All members are given the same queues and client identifiers, both sorted, and each finds its own share, so that every
queue belongs to exactly one. The shares are those of Apache's Java client: a group may have members of both.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Collection, Sequence

from lmq.queues import MessageQueue

Allocate = Callable[[str, Sequence[MessageQueue], Sequence[str]], Sequence[MessageQueue]]
"""Gives the share of the member with this client identifier, of these queues, among these members."""


def allocate_averagely(client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> list[MessageQueue]:
    """Return neighbouring queues; the first members have one more where there is a rest."""
    index = members.index(client_id)
    size, more = divmod(len(queues), len(members))
    start = index * size + min(index, more)
    return list(queues[start : start + size + (index < more)])


def allocate_by_circle(client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> list[MessageQueue]:
    """Return every queue that is the member's turn, as cards are dealt."""
    return list(queues[members.index(client_id) :: len(members)])


def allocate_by_config(own: Collection[MessageQueue]) -> Allocate:
    """Return an allocation that gives this member its configured queues, whatever other members have."""

    def allocate(_client_id: str, queues: Sequence[MessageQueue], _members: Sequence[str]) -> list[MessageQueue]:
        return [queue for queue in queues if queue in own]

    return allocate


def allocate_by_machine_room(rooms: Collection[str]) -> Allocate:
    """Return a way that shares out the queues of brokers in these rooms only.

    A broker says its room in its name: `room@name`.
    """

    def allocate(client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> list[MessageQueue]:
        inside = [queue for queue in queues if _room_in_name(queue.broker_name) in rooms]
        index = members.index(client_id)
        size, more = divmod(len(inside), len(members))
        share = inside[index * size : (index + 1) * size]
        return share + (inside[len(members) * size + index :][:1] if index < more else [])

    return allocate


def _room_in_name(broker_name: str) -> str:
    room, separator, _ = broker_name.partition("@")
    return room if separator else ""


def allocate_near_machine_room(
    room_of_broker: Callable[[str], str],
    room_of_member: Callable[[str], str],
    inner: Allocate = allocate_averagely,
) -> Allocate:
    """Return a way that gives queues to members in the same room, and those of rooms without members to all.

    Args:
        room_of_broker: Tells the room of a broker's name.
        room_of_member: Tells the room of a client identifier.
        inner: How queues are shared out among the members of a room, and the rest among all.
    """

    def allocate(client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> list[MessageQueue]:
        inhabited = {room_of_member(member) for member in members}
        own = room_of_member(client_id)
        near = [queue for queue in queues if room_of_broker(queue.broker_name) == own]
        neighbours = [member for member in members if room_of_member(member) == own]
        forsaken = [queue for queue in queues if room_of_broker(queue.broker_name) not in inhabited]
        return [*inner(client_id, near, neighbours), *inner(client_id, forsaken, members)]

    return allocate


def allocate_by_consistent_hash(virtual_nodes: int = 10) -> Allocate:
    """Return a way in which few queues change hands when a member comes or goes.

    Args:
        virtual_nodes: How many places each member has on the ring; more make shares more equal.
    """

    def allocate(client_id: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> list[MessageQueue]:
        ring = sorted({_ring_hash(f"{member}-{i}"): member for member in members for i in range(virtual_nodes)}.items())
        places = [place for place, _ in ring]
        return [queue for queue in queues if ring[_next(places, queue)][1] == client_id]

    return allocate


def _next(places: list[int], queue: MessageQueue) -> int:
    """Return the index of the first place at or after the queue's."""
    text = f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"
    return bisect.bisect_left(places, _ring_hash(text)) % len(places)


def _ring_hash(text: str) -> int:
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:4], "big")

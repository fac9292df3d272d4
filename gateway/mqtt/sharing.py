"""Shared subscriptions of the door: which groups there are, from the first subscription of each to its last.

A group is the pair of its name and a topic filter. What it has taken and finished outlives the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.lmq.queue_name import mqtt_queue_name
from gateway.mqtt.assignment import ROUND_ROBIN
from gateway.mqtt.group_ends import GroupEnds
from gateway.mqtt.session import Subscription
from gateway.mqtt.shared_group import HANDED_OVER, OWNER_PREFIX, SharedDesk, SharedGroup
from gateway.mqtt.topics import split_share


class Sharing:
    """All groups of a door, each as long as a session subscribes to it."""

    def __init__(self, desk: SharedDesk) -> None:
        self.strategy = ROUND_ROBIN
        self.leave_alone: Callable[[Subscription], None] = lambda _: None  # one that has messages of a group that ends
        self._desk = desk
        self._groups: dict[tuple[bytes, bytes], SharedGroup] = {}  # by group and filter
        self._counts: dict[tuple[bytes, bytes], int] = {}
        self.ends = GroupEnds(desk.broker.when_kept)

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return len(self._groups)

    def take_up(self, topic_filter: bytes) -> None:
        """Count a subscription to a shared filter that the process before left.

        That process may have ended its group, and itself before the end of the subscription was durable: then what the
        group did is there again.
        """
        group, inner = split_share(topic_filter)
        self._desk.broker.pop.restore(mqtt_queue_name(inner), OWNER_PREFIX + group, -1)
        self.enter(topic_filter, is_durable=True)

    def enter(self, topic_filter: bytes, *, is_durable: bool) -> SharedGroup:
        """Count one more subscription to a shared filter, which may begin its group; return that."""
        key = split_share(topic_filter)
        if is_durable:
            self.ends.watch(key)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = SharedGroup(self, self._desk, topic_filter)
        self._counts[key] = self._counts.get(key, 0) + 1
        return group

    def group_of(self, topic_filter: bytes) -> SharedGroup:
        """Return the group of a shared filter that a session subscribes to."""
        return self._groups[split_share(topic_filter)]

    def own(self, topic_filter: bytes, queue_offset: int, client_id: bytes) -> None:
        """Hand a message of a shared filter to no member, where it has a group: a client's session has it, at QoS 2."""
        group = self._groups.get(split_share(topic_filter))
        if group is None:
            return
        group.own(queue_offset, client_id)
        pops = self._desk.broker.pop
        if (
            pops.endings.find(group.light_name, group.owner, queue_offset) is not None
        ):  # its session's end was not durable
            pops.tell_ends(group.light_name, group.owner, (queue_offset,), HANDED_OVER, 0)

    def leave(self, subscription: Subscription) -> None:
        """Let a subscription that is stopped be no more of its group, which it may end; harmless for any other."""
        if subscription.group is None:
            return
        if not subscription.unacked:
            subscription.group = None
        key = split_share(subscription.topic_filter)
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
            self._groups.pop(key).drop(self.leave_alone)
            self.ends.note(key)

    def groups(self) -> list[SharedGroup]:
        """Return all groups."""
        return list(self._groups.values())

    def groups_on(self, queue_ref: int) -> list[SharedGroup]:
        """Return the groups that share a light queue."""
        return [group for group in self._groups.values() if group.queue_ref == queue_ref]

    def look_at_stalled(self) -> None:
        """Look, once in a while, whether groups that are full because of a stalled member can go on without it."""
        for group in self._groups.values():
            if group.is_full:
                group.run_soon()

    def forget_others(self) -> None:
        """Drop what a process before left of groups that are no more."""
        known = {(group.light_name, group.owner) for group in self._groups.values()}
        for key in self._desk.broker.pop.journal.names.list_keys():
            light_name, _, owner = key.partition(b"\0")
            if owner.startswith(OWNER_PREFIX) and (light_name, owner) not in known:
                self._desk.broker.pop.drop(light_name, owner)

    def held_positions(self) -> Iterator[tuple[int, int]]:
        """Give queue and first offset that is not done of each group; they may come and go between two of them."""
        for group in list(self._groups.values()):
            yield group.queue_ref, group.floor

"""The producers that are connected, by their groups: any of a group can be asked about its transactions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Set as AbstractSet

from gateway.rocketmq.client import Client


class ProducerTable:
    """The live producers of each group, by connection."""

    def __init__(self) -> None:
        self._groups: dict[str, OrderedDict[int, Client]] = {}

    def set_groups(self, client: Client, groups: AbstractSet[str]) -> None:
        """Let a client be a producer of these groups, and of no other."""
        for name in client.producer_groups - groups:
            members = self._groups[name]
            members.pop(client.output.conn_id, None)
            if not members:
                del self._groups[name]
        for name in groups:
            self._groups.setdefault(name, OrderedDict())[client.output.conn_id] = client
        client.producer_groups = set(groups)

    def members(self, group: str) -> list[Client]:
        """Return the producers of a group."""
        return list(self._groups.get(group, {}).values())

    def has_members(self, group: str) -> bool:
        """Return whether a producer of the group is connected."""
        return group in self._groups

    def take_next(self, group: str) -> Client | None:
        """Return a producer of the group that reads what it is sent, each in its turn; None where none does."""
        members = self._groups.get(group)
        if not members:
            return None
        for _ in range(len(members)):
            conn_id, client = next(iter(members.items()))
            members.move_to_end(conn_id)
            if client.output.is_writable:
                return client
        return None

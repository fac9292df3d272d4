"""Which lists changed that seldom do: a page that stays open asks for such a list again only then."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from gateway.admin.view import AdminView
from gateway.events import Kind

# What any of these lists may look different after.
ANY = (Kind.DEFINITIONS_IMPORTED, Kind.SETTINGS_CHANGED, Kind.CHANGED)
VHOSTS = (Kind.VHOST_CREATED, Kind.VHOST_DELETED, Kind.VHOST_LIMITS_SET, Kind.VHOST_LIMITS_CLEARED)
USERS = (
    Kind.USER_CREATED,
    Kind.USER_DELETED,
    Kind.USER_DISABLED,
    Kind.USER_ENABLED,
    Kind.USER_TAGS_SET,
    Kind.USER_LIMITS_SET,
    Kind.USER_LIMITS_CLEARED,
)
PERMISSIONS = (*USERS, Kind.PERMISSION_CREATED, Kind.PERMISSION_DELETED, Kind.USER_PASSWORD_CHANGED)


class ListChanges:
    """Numbers that go up when a list may have changed; found out, when somebody follows, from counts kept anyway.

    Args:
        view: The gateway.
    """

    def __init__(self, view: AdminView) -> None:
        self._view = view
        self._seen: dict[str, Hashable] = {}
        self.numbers: dict[str, int] = {}  # by list, as `look` found them last

    def look(self) -> dict[str, int]:
        """Return the number of each list: another one than before where something in the list may have changed."""
        for name, seen in self._find().items():
            if self._seen.get(name) != seen:
                self._seen[name] = seen
                self.numbers[name] = self.numbers.get(name, 0) + 1
        return dict(self.numbers)

    def _find(self) -> dict[str, Hashable]:
        told = self._view.authenticator.events.told

        def count(*kinds: Iterable[Kind]) -> int:
            return sum(told.get(kind, 0) for some in kinds for kind in some)

        versions = queues = connections = 0
        for vhost in self._view.vhosts:
            versions += vhost.exchanges.version
            queues += len(vhost)
            connections += len(vhost.connections)
        vhosts = count(ANY, VHOSTS), len(self._view.vhosts)
        rates = self._view.broker.flows.changes
        policies = count((Kind.POLICY_SET, Kind.POLICY_CLEARED))
        return {
            "exchanges": (vhosts, policies, versions, rates),
            "vhosts": (vhosts, queues, connections, rates),
            "policies": (vhosts, policies),
            "users": count(ANY, USERS),
            "permissions": (vhosts, count(PERMISSIONS)),
            "retained": self._view.broker.retained.changes,
        }

"""What operators say of a virtual host: what it is for, and how much there may be in it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from gateway.amqp.errors import AmqpError
from gateway.amqp.reply_codes import ReplyCode

NO_LIMIT = -1  # as RabbitMQ's limits say it
CONNECTIONS_MAX = "max-connections"
QUEUES_MAX = "max-queues"
LIMITS = (CONNECTIONS_MAX, QUEUES_MAX)
"""The limits that RabbitMQ knows, by its names."""


class HostProfile(NamedTuple):
    """What is said of one virtual host; a limit below 0 is none.

    `queue_type` is the type of queues that are declared without one, where it fits them; empty: classic.
    """

    description: str = ""
    tags: tuple[str, ...] = ()
    connections_max: int = NO_LIMIT
    queues_max: int = NO_LIMIT
    queue_type: str = ""

    @property
    def limits(self) -> dict[str, int]:
        """The limits that there are, by RabbitMQ's names."""
        found = {CONNECTIONS_MAX: self.connections_max, QUEUES_MAX: self.queues_max}
        return {name: value for name, value in found.items() if value >= 0}

    def with_limit(self, name: str, value: int) -> HostProfile:
        """Return the profile with another limit, which is one of `LIMITS`."""
        value = max(value, NO_LIMIT)
        return self._replace(connections_max=value) if name == CONNECTIONS_MAX else self._replace(queues_max=value)

    def check_room(self, vhost: str, count: int, queue: str) -> None:
        """Check that another queue may be made where there are `count`.

        Raises:
            AmqpError: PRECONDITION_FAILED.
        """
        limit = self.queues_max
        if 0 <= limit <= count:
            reason = f"cannot declare queue '{queue}': queue limit in vhost '{vhost}' ({limit}) is reached"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)


def dump_profile(profile: HostProfile, *, is_going: bool) -> bytes:
    """Return the row of a virtual host; `is_going`: its deletion has begun."""
    row: dict[str, Any] = {"going": True} if is_going else {}
    if profile.description:
        row["description"] = profile.description
    if profile.tags:
        row["tags"] = profile.tags
    if profile.queue_type:
        row["queue_type"] = profile.queue_type
    if profile.limits:
        row["limits"] = profile.limits
    return json.dumps(row).encode()


def load_profile(row: bytes) -> tuple[HostProfile, bool]:
    """Return what a row says of a virtual host, and whether its deletion has begun."""
    said = json.loads(row)
    profile = HostProfile(said.get("description", ""), tuple(said.get("tags", ())))
    for name, value in said.get("limits", {}).items():
        profile = profile.with_limit(name, value)
    return profile._replace(queue_type=said.get("queue_type", "")), "going" in said

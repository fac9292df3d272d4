"""Events as MQTT messages below `$events/`: a topic for each kind, the body JSON.

Where EMQX has the event, the topic's name is EMQX's. Source: docs/operations.md, "Events as messages".
"""

from __future__ import annotations

import json
from typing import NamedTuple

from core.reserved import EVENTS_ROOT
from gateway.events import Event, Kind

MQTT = "mqtt"
_OF_MQTT = {Kind.LOGIN: "client_connected", Kind.CONNECTION_CLOSED: "client_disconnected"}


class Who(NamedTuple):
    """The client and user of a connection."""

    client: str
    user: str


def topic_of(event: Event) -> bytes:
    """Return the topic of an event."""
    name = _OF_MQTT.get(event.kind) if event.actor.door == MQTT else None
    return EVENTS_ROOT + (name or event.kind.value.replace(".", "_")).encode()


def body_of(event: Event, who: Who | None, now_ms: int) -> bytes:
    """Return an event as JSON: what happened and when, by whose doing, and the event's own fields.

    `who` is on the connection, where that is known.
    """
    actor = event.actor
    told: dict[str, object] = {"event": event.kind.value, "timestamp": now_ms, "door": actor.door}
    if actor.conn_id:
        told["conn"] = actor.conn_id
    if actor.peer:
        told["peername"] = actor.peer
    told |= event.fields
    user = actor.user or (who.user if who is not None else "")
    client = told.pop("client", "") or (who.client if who is not None else "")
    if user:
        told["username"] = user
    if client:
        told["clientid"] = client
    return json.dumps(told, ensure_ascii=False, default=str).encode(errors="replace")

"""Events as messages of the exchange `amq.rabbitmq.event`, as RabbitMQ's plugin tells them.

The routing key is the kind, the headers say the rest, and the body is empty.

Source: docs/operations.md, "Events as messages".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import cast

from pamqp.commands import Basic
from pamqp.common import FieldValue

from gateway.event_stream.topics import Who
from gateway.events import Event

EVENT_EXCHANGE = "amq.rabbitmq.event"
_TEXT_MAX = 1_024  # characters of a value; chosen: an event is a line for operators
_ITEMS_MAX = 64  # of a list; chosen: an event is a line for operators
_CONTROL = re.compile("[\x00-\x02]")  # what a record's properties cannot hold


def headers_of(event: Event, who: Who | None, now_ms: int) -> dict[str, object]:
    """Return the headers of an event, by RabbitMQ's names where it has them; `who` is on the connection."""
    actor = event.actor
    told: dict[str, object] = {"timestamp_in_ms": now_ms, "protocol": actor.door}
    user = actor.user or (who.user if who is not None else "")
    if user:
        told["user_who_performed_action"] = user
    if actor.peer:
        host, _, port = actor.peer.rpartition(":")
        told |= {"peer_host": host, "connection_name": actor.peer}
        if port.isdecimal():
            told["peer_port"] = int(port)
    if actor.conn_id:
        told["conn"] = actor.conn_id
    if who is not None and who.client:
        told["client"] = who.client
    told |= {name: _plain(value) for name, value in event.fields.items()}
    return told


def block_of(event: Event, who: Who | None, now_ms: int) -> bytes:
    """Return the property block of an event's message."""
    moment = datetime.fromtimestamp(now_ms // 1_000, UTC)
    headers = cast("dict[str, FieldValue]", headers_of(event, who, now_ms))
    return Basic.Properties(headers=headers, delivery_mode=2, timestamp=moment).marshal()


def _plain(value: object) -> object:
    """Return a value as a table can have it."""
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in list(value)[:_ITEMS_MAX]]
    if isinstance(value, dict):
        return {str(name)[:128]: _plain(one) for name, one in list(value.items())[:_ITEMS_MAX]}
    return _CONTROL.sub("?", str(value)[:_TEXT_MAX])

"""Where a dead letter died first, and what the gateway put on it.

Publishers write headers, too: believed is only the property that the gateway gives letters, which no door takes.
"""

from __future__ import annotations

from pamqp.common import FieldTable

from gateway.amqp.letters import decode_place

UNKNOWN = "the gateway cannot tell where they died: give a destination"
_SAID = ("queue", "reason", "exchange")
_OWN = frozenset(
    {"x-death", "x-delivery-count", *(f"x-{which}-death-{name}" for which in ("first", "last") for name in _SAID)}
)


def find_origin(vhost: str, said: bytes) -> str | None:
    """Return the queue of a virtual host that a letter with this `LMQ_DIED` died in first; None: none of its."""
    place = decode_place(said)
    return place[1] if place[0] == vhost and place[1] else None


def strip_deaths(headers: FieldTable) -> FieldTable:
    """Return headers without those that the gateway puts on dead letters; the application's stay."""
    return {name: value for name, value in headers.items() if name not in _OWN}

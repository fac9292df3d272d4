"""Topics that clients cannot publish to: the log's own records, and what the gateway tells of itself."""

from __future__ import annotations

import re

DISPATCH_SET_TOPIC = b"LMQ_DISPATCH_SET"  # records that hold an interned dispatch set; they are in no queue
GAP_TOPIC = b"LMQ_GAP"  # records that lead over what is no longer kept; they are in no queue
SYS_ROOT = b"$SYS/broker/"  # in MQTT's form; what is below is the gateway's to say, but the state of bridges
EVENTS_ROOT = b"$events/"  # in MQTT's form, likewise
OWN_ROOTS = (SYS_ROOT, EVENTS_ROOT)
RESERVED_TOPICS = frozenset((DISPATCH_SET_TOPIC, GAP_TOPIC))
_BRIDGE_STATE = re.compile(rb"\$SYS/broker/connection/[^/]+/state")


def is_bridge_state(topic: bytes) -> bool:
    """Return whether bridges of Mosquitto say at a topic below `SYS_ROOT` whether they are connected: clients may."""
    return _BRIDGE_STATE.fullmatch(topic) is not None

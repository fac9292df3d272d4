"""Topics that clients cannot publish to: the log's own records, and what the gateway tells of itself."""

from __future__ import annotations

DISPATCH_SET_TOPIC = b"LMQ_DISPATCH_SET"  # records that hold an interned dispatch set; they are in no queue
GAP_TOPIC = b"LMQ_GAP"  # records that lead over what is no longer kept; they are in no queue
SYS_ROOT = b"$SYS/broker/"  # in MQTT's form; what is below is the gateway's to say: nobody publishes there
EVENTS_ROOT = b"$events/"  # in MQTT's form, likewise
OWN_ROOTS = (SYS_ROOT, EVENTS_ROOT)
RESERVED_TOPICS = frozenset((DISPATCH_SET_TOPIC, GAP_TOPIC))

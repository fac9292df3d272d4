"""Topics that are the log's own: its records on them are no messages, and no message goes there."""

from __future__ import annotations

DISPATCH_SET_TOPIC = b"LMQ_DISPATCH_SET"  # records that hold an interned dispatch set; they are in no queue
GAP_TOPIC = b"LMQ_GAP"  # records that lead over what is no longer kept; they are in no queue
RESERVED_TOPICS = frozenset((DISPATCH_SET_TOPIC, GAP_TOPIC))

"""Declarations of queues with each argument that RabbitMQ knows, for each type of queue and each kind of value.

The same are made at RabbitMQ (`record_rabbitmq.py arguments`) and at the door (`test_queue_arguments.py`).
"""

from __future__ import annotations

import struct

from tests.conformance.amqp_steps import declare_raw, long, number, table, text

TYPES = ("classic", "quorum", "stream")
NUMBERS = (
    "x-expires", "x-message-ttl", "x-max-length", "x-max-length-bytes", "x-max-priority", "x-delivery-limit",
    "x-quorum-initial-group-size", "x-quorum-target-group-size", "x-initial-cluster-size",
    "x-stream-max-segment-size-bytes", "x-stream-filter-size-bytes", "x-max-in-memory-length",
    "x-max-in-memory-bytes", "x-consumer-timeout", "x-queue-version",
)  # fmt: skip
TEXTS = {
    "x-overflow": ("drop-head", "reject-publish", "reject-publish-dlx", "odd"),
    "x-queue-mode": ("default", "lazy", "odd"),
    "x-queue-leader-locator": ("client-local", "balanced", "random", "least-leaders", "odd"),
    "x-queue-master-locator": ("min-masters", "client-local"),
    "x-dead-letter-exchange": ("", "dlx"),
    "x-dead-letter-routing-key": ("k",),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once", "odd"),
    "x-max-age": ("1h", "90D", "1Y", "5x", "h5", "1hh"),
    "x-queue-type": ("odd",),
    "x-ha-policy": ("all",),
    "x-odd": ("anything",),
    "odd": ("anything",),
}
BOOLS = ("x-single-active-consumer",)
VALUES = {
    "zero": number(0),
    "one": number(1),
    "two": number(2),
    "negative": number(-1),
    "300": number(300),
    "long": long(4_000_000_000),
    "huge": long(10**15),
    "byte": b"b" + struct.pack(">b", 5),
    "text": text(b"5"),
    "true": b"t\x01",
    "double": b"d" + struct.pack(">d", 5.0),
    "void": b"V",
    "array": b"A" + struct.pack(">I", 0),
    "table": b"F" + table(),
}
WRONG_OF_TEXTS = ("one", "true", "void", "array")


def _cases():
    for kind in TYPES:
        for name in (*NUMBERS, *BOOLS):
            yield from ((kind, name, label) for label in VALUES)
        for name, choices in TEXTS.items():
            yield from ((kind, name, f"'{choice}'") for choice in choices)
            yield from ((kind, name, label) for label in WRONG_OF_TEXTS)


CASES = {f"{kind}: {name} = {label}": (kind, name, label) for kind, name, label in _cases()}


def declaration(case):
    """Return the frame that declares a durable queue so."""
    kind, name, label = CASES[case]
    value = text(label.strip("'").encode()) if label.startswith("'") else VALUES[label]
    fields = [(name.encode(), value)]
    if name != "x-queue-type" and kind != "classic":
        fields.append((b"x-queue-type", text(kind.encode())))
    return declare_raw(table(*fields), bits=2)

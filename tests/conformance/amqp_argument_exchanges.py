"""What is said to an AMQP server of a queue's arguments: a part of `amqp_exchanges.py`."""

from __future__ import annotations

import struct

from tests.conformance.amqp_steps import (
    DECLARE,
    declare_raw,
    declare_with,
    long,
    nested,
    number,
    table,
    text,
    ttl,
)

ARGUMENTS = {
    "time to live: text": [declare_with(message_ttl="10")],
    "time to live: boolean": [declare_with(message_ttl=True)],
    "time to live: negative": [declare_with(message_ttl=-1)],
    "time to live: double": [ttl(b"d" + struct.pack(">d", 1.5))],
    "time to live: float": [ttl(b"f" + struct.pack(">f", 1.5))],
    "time to live: decimal": [ttl(b"D\0\0\0\0\5")],
    "time to live: void": [ttl(b"V")],
    "time to live: table": [ttl(b"F" + table())],
    "time to live: array": [ttl(b"A\0\0\0\0")],
    "time to live: octets": [ttl(b"x\0\0\0\0")],
    "time to live: moment": [ttl(b"T" + struct.pack(">q", 5))],
    "time to live: other width": [ttl(long(10)), ttl(number(10))],
    "time to live: longest": [ttl(long(315_360_000_000))],
    "time to live: too long": [ttl(long(315_360_000_001))],
    "time to live: other": [declare_with(message_ttl=10), declare_with(message_ttl=20)],
    "time to live: other type": [declare_with(message_ttl=10), declare_with(message_ttl="10")],
    "time to live: gone": [declare_with(message_ttl=10), DECLARE],
    "time to live: new": [DECLARE, ttl(long(10))],
    "time to live: first of two": [
        declare_raw(table((b"x-message-ttl", number(10)), (b"x-message-ttl", text(b"a")))),
        declare_with(message_ttl=10),
    ],
    "expiry: zero": [declare_with(expires=0)],
    "expiry: negative": [declare_with(expires=-5)],
    "expiry: text": [declare_with(expires="abc")],
    "expiry before time to live": [declare_with(message_ttl="a", expires="b")],
    "queue type: unknown": [declare_with(queue_type="odd")],
    "queue type: number": [declare_with(queue_type=1)],
    "queue type: gone": [declare_with(queue_type="classic"), DECLARE],
    "queue type: new": [DECLARE, declare_with(queue_type="classic")],
    "queue mode: unknown": [declare_with(queue_mode="odd")],
    "queue mode: number": [declare_with(queue_mode=1)],
    "queue mode: gone": [declare_with(queue_mode="lazy"), DECLARE],
    "length: new": [DECLARE, declare_with(max_length=1)],
    "unknown argument": [declare_with(odd=1)],
    "table of an unknown type": [declare_raw(table((b"a", b"Z\0")))],
    "table cut short": [declare_raw(struct.pack(">I", 100) + b"abc")],
    "table with a value that is longer": [declare_raw(table((b"a", b"S\0\0\0\xff")))],
    "table 15 deep": [declare_raw(nested(14))],
    "table 100 deep": [declare_raw(nested(100))],
    "table of 256 fields": [declare_raw(table(*[(b"a", b"V")] * 256))],
    "table of 40,000 fields": [declare_raw(table(*[(b"a", b"V")] * 40_000))],
    "what means nothing to a classic queue, new": [DECLARE, declare_with(delivery_limit=1), declare_with(max_age="1D")],
    "queue type: unknown, declared again": [DECLARE, declare_with(queue_type="odd")],
    "time to live: moment, declared again": [
        declare_with(message_ttl=10),
        ttl(b"T" + struct.pack(">q", 10)),
        ttl(b"d" + struct.pack(">d", 10.0)),
    ],
    "two wrong arguments": [declare_with(delivery_limit=1, max_length="a")],
    "two wrong arguments, one of them the exchange of dead letters": [
        declare_with(queue_type="odd", dead_letter_exchange=1)
    ],
    "dead letters to the topic exchange by the empty key": [
        declare_with(dead_letter_exchange="amq.topic", dead_letter_routing_key="")
    ],
}

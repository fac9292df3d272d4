"""The properties of a message: a map, its encoded form, and the names that the gateway itself uses.

The encoded form is RocketMQ's: `key 0x01 value 0x02`, UTF-8, at most 32,767 bytes. A value that holds one of the two
separators, or a name that the log reserves, cannot be a property under its own name; it travels in `LMQ_PAIR`, or in a
front's own encoded block (`LMQ_AMQP`).

Source: docs/storage-format.md, "Properties".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

TTL_MS_MAX = 10**15  # 31,000 years; a moment plus it still fits a signed 64-bit number
PROPERTIES_BYTES_MAX = 32_767  # RocketMQ's record has a signed size of two bytes

INNER_MULTI_DISPATCH = b"INNER_MULTI_DISPATCH"  # names of the light queues, joined by commas
INNER_MULTI_QUEUE_OFFSET = b"INNER_MULTI_QUEUE_OFFSET"  # their offsets, in the same order
CRC = b"__CRC32#"  # over the record before it; always last
DISPATCH_SET = b"LMQ_SET"  # physical offset of the dispatch set's record, in place of the two lists
TOPIC = b"LMQ_TOPIC"  # the topic in MQTT's form: levels between slashes
CLIENT = b"LMQ_CLIENT"  # the publisher's client identifier
USER = b"LMQ_USER"  # the publisher's user name
PROTOCOL = b"LMQ_PROTOCOL"  # the door it came in by: mqtt, amqp or rocketmq
EXCHANGE = b"LMQ_EXCHANGE"  # AMQP exchange, absent for amq.topic
ROUTING_KEY = b"LMQ_KEY"  # AMQP routing key, absent where the topic says the same
DIED_IN = b"LMQ_DIED"  # where a dead letter died first: AMQP virtual host/queue, each percent-encoded
CONTENT_TYPE = b"CONTENT_TYPE"  # MIME type of the body
TTL_MS = b"LMQ_TTL_MS"  # how long the message lives from its store time on; the flag tells that it is there
AMQP = b"LMQ_AMQP"  # AMQP's property block as it came, base64
ESCAPED_CONTENT_TYPE = b"LMQ_CONTENT_TYPE"  # in place of CONTENT_TYPE, where that cannot be written
RESPONSE_TOPIC = b"LMQ_RESPONSE_TOPIC"  # where an answer is to be published
CORRELATION = b"LMQ_CORRELATION"  # what an answer is to carry, escaped
PAYLOAD_FORMAT = b"LMQ_FORMAT"  # 1: the body is UTF-8; 0: it is bytes
PAIR = b"LMQ_PAIR"  # a user property that cannot stand under its own name: name=value, both escaped
DUE = b"LMQ_DUE"  # when a waiting message is due
CANCEL = b"TIMER_DEL_UNIQKEY"  # topic+key of the waiting message that this one takes back
WAITING_FOR = b"LMQ_FOR"  # the topic in MQTT's form that a waiting message goes to
WAITING_AT = b"LMQ_AT"  # the AMQP exchange that a waiting message goes to, and its routing keys: JSON in base64
LETTER_OF = b"LMQ_LETTER_OF"  # the place of the message that a dead letter is of
TAGS = b"TAGS"
KEYS = b"KEYS"
UNIQ_KEY = b"UNIQ_KEY"

RESERVED = frozenset(
    (
        INNER_MULTI_DISPATCH,
        INNER_MULTI_QUEUE_OFFSET,
        CRC,
        DISPATCH_SET,
        TOPIC,
        CLIENT,
        USER,
        PROTOCOL,
        EXCHANGE,
    )
    + (
        ROUTING_KEY,
        DIED_IN,
        TTL_MS,
        AMQP,
        ESCAPED_CONTENT_TYPE,
        RESPONSE_TOPIC,
        CORRELATION,
        DUE,
        CANCEL,
        WAITING_FOR,
        WAITING_AT,
        LETTER_OF,
        PAYLOAD_FORMAT,
        PAIR,
        b"WAIT",
        b"DELAY",
        b"REAL_TOPIC",
        b"REAL_QID",
        b"RETRY_TOPIC",
        b"POP_CK",
        b"TRAN_MSG",
    )
    + (
        b"PGROUP",
        b"__transactionId__",
        b"MIN_OFFSET",
        b"MAX_OFFSET",
        b"1ST_POP_TIME",
        b"MSG_REGION",
        b"TRACE_ON",
        b"CLUSTER",
    )
)


def is_plain(name: bytes, value: bytes) -> bool:
    """Return whether a peer's field can be stored as a property under its own name."""
    return (
        name != b""
        and name not in RESERVED
        and b"\x01" not in name
        and b"\x02" not in name
        and b"\x01" not in value
        and b"\x02" not in value
    )


def encode_properties(items: Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the encoded form of `items`, in their order; the caller has checked them."""
    pairs = items.items() if isinstance(items, Mapping) else items
    return b"".join(b"%b\x01%b\x02" % pair for pair in pairs)


def decode_properties(encoded: bytes | bytearray | memoryview) -> dict[bytes, bytes]:
    """Return the map of an encoded form; pieces without a separator are left out, the last of equal names wins."""
    found: dict[bytes, bytes] = {}
    for piece in bytes(encoded).split(b"\x02"):
        name, separator, value = piece.partition(b"\x01")
        if separator:
            found[name] = value
    return found


def encode_origin(protocol: bytes, client: bytes, user: bytes) -> bytes:
    """Return the encoded properties that name the publisher; empty parts and parts with separators are left out."""
    parts = ((PROTOCOL, protocol), (CLIENT, client), (USER, user))
    return encode_properties([(name, value) for name, value in parts if value and is_plain(b"x", value)])

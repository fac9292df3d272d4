"""Names of light queues: reversible, in RocketMQ's alphabet, at most 127 bytes.

A name is `%LMQ%mqtt%<filter>` or `%LMQ%amqp%<vhost>%<queue>`. Letters, digits, `-` and `_` stand for themselves, `/`
is `%`, `+` is `|p`, `#` is `|h`, any other byte `|` and two lower hex digits. In a vhost `/` is `|2f`, so that the
first `%` after it ends it. AMQP queues that end with their users share names `%LMQ%amqp%<vhost>%|t<number>`, one after
the other; what an AMQP queue refuses lies in `%LMQ%amqp%|r`, and the rest of its name; its messages of priority 3 in
`%LMQ%amqp%|y3%`, and the rest; `%LMQ%amqp%|x`, a vhost and a name stand for an exchange. Where a name would pass 127
bytes, `|z` and 40 hex digits of its SHA-256 stand for what follows the kind; the definition of such a queue keeps what
it is called.

Source: docs/storage-format.md, "Names of light queues".
"""

from __future__ import annotations

import hashlib
import re

LIGHT_PREFIX = b"%LMQ%"
NAME_BYTES_MAX = 127  # RocketMQ's limit for a topic
MQTT = b"mqtt"
AMQP = b"amqp"

_HASH_DIGITS = 40  # 160 bits: no two names share one by chance
_PLAIN = re.compile(rb"[A-Za-z0-9_-]*")
_ESCAPED = re.compile(rb"\|(p|h|[0-9a-f]{2})|%|[A-Za-z0-9_-]+")
_LEVEL = re.compile(rb"%%LMQ%%%b%%\|y([0-9]+)%%" % AMQP)
_SPECIAL = {b"/": b"%", b"+": b"|p", b"#": b"|h"}


def _encode_byte(byte: int) -> bytes:
    one = bytes((byte,))
    return one if _PLAIN.fullmatch(one) else _SPECIAL.get(one, b"|%02x" % byte)


_TABLE = [_encode_byte(byte) for byte in range(256)]
_DECODED = {encoded: bytes((byte,)) for byte, encoded in enumerate(_TABLE)}


def mqtt_queue_name(topic_filter: bytes) -> bytes:
    """Return the name of the light queue of an MQTT topic filter."""
    return _bounded(MQTT, _encode(topic_filter))


def amqp_queue_name(vhost: bytes, queue: bytes) -> bytes:
    """Return the name of the light queue of an AMQP queue."""
    return _bounded(AMQP, _encode(vhost).replace(b"%", b"|2f") + b"%" + _encode(queue))


def amqp_passing_name(vhost: bytes, number: int) -> bytes:
    """Return the name of a light queue for AMQP queues that come and go, one after the other."""
    return _bounded(AMQP, b"%b%%|t%d" % (_encode(vhost).replace(b"%", b"|2f"), number))


def amqp_refused_name(light_name: bytes) -> bytes:
    """Return the name of the light queue beside that of an AMQP queue: what it refuses becomes a dead letter there."""
    return _bounded(AMQP, b"|r" + light_name.removeprefix(LIGHT_PREFIX + AMQP + b"%"))


def amqp_level_name(light_name: bytes, level: int) -> bytes:
    """Return the name of the light queue of an AMQP queue's messages of a priority above 0."""
    return _bounded(AMQP, b"|y%d%%" % level + light_name.removeprefix(LIGHT_PREFIX + AMQP + b"%"))


def amqp_crossing_name(vhost: bytes, exchange: bytes) -> bytes:
    """Return the name of the light queue that stands for an exchange which looks at more than a message's topic."""
    return _bounded(AMQP, b"|x" + _encode(vhost).replace(b"%", b"|2f") + b"%" + _encode(exchange))


def is_crossing(name: bytes) -> bool:
    """Return whether a light queue stands for an exchange; nothing is ever in it."""
    return name.startswith(LIGHT_PREFIX + AMQP + b"%|x")


def level_of(name: bytes) -> int:
    """Return the priority of the messages that a light queue of an AMQP queue is for; 0: the lowest, or of another."""
    found = _LEVEL.match(name)
    return 0 if found is None else int(found[1])


def is_light(name: bytes) -> bool:
    """Return whether `name` is one of a light queue, of whatever kind."""
    return name.startswith(LIGHT_PREFIX)


def is_amqp(name: bytes) -> bool:
    """Return whether `name` is one of an AMQP queue."""
    return name.startswith(LIGHT_PREFIX + AMQP + b"%")


def parse_queue_name(name: bytes) -> tuple[bytes, tuple[bytes, ...]] | None:
    """Return kind and parts: `(MQTT, (filter,))` or `(AMQP, (vhost, queue))`; None for other and hashed names."""
    if name.startswith(LIGHT_PREFIX + MQTT + b"%"):
        topic_filter = _decode(name[len(LIGHT_PREFIX + MQTT) + 1 :])
        return None if topic_filter is None or mqtt_queue_name(topic_filter) != name else (MQTT, (topic_filter,))
    if is_amqp(name):
        vhost, separator, queue = name[len(LIGHT_PREFIX + AMQP) + 1 :].partition(b"%")
        parts = (_decode(vhost.replace(b"|2f", b"%")), _decode(queue))
        if not separator or parts[0] is None or parts[1] is None:
            return None
        return (AMQP, (parts[0], parts[1])) if amqp_queue_name(parts[0], parts[1]) == name else None
    return None


def _encode(text: bytes) -> bytes:
    return text if _PLAIN.fullmatch(text) else b"".join([_TABLE[byte] for byte in text])


def _decode(encoded: bytes) -> bytes | None:
    pieces: list[bytes] = []
    pos = 0
    while pos < len(encoded):
        found = _ESCAPED.match(encoded, pos)
        if found is None:
            return None
        piece = found[0]
        decoded = piece if _PLAIN.fullmatch(piece) else _DECODED.get(piece)
        if decoded is None:
            return None
        pieces.append(decoded)
        pos = found.end()
    return b"".join(pieces)


def _bounded(kind: bytes, encoded: bytes) -> bytes:
    name = b"%b%b%%%b" % (LIGHT_PREFIX, kind, encoded)
    if len(name) <= NAME_BYTES_MAX:
        return name
    digest = hashlib.sha256(name).hexdigest()[:_HASH_DIGITS].encode()
    return b"%b%b%%|z%b" % (LIGHT_PREFIX, kind, digest)

"""Queues, and names of the light queues behind MQTT filters and AMQP queues.

A name is in RocketMQ's alphabet and has at most 127 bytes; a longer one is hashed.

Source: docs/storage-format.md, "Names of light queues".
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from lmq.arguments import check_is

LIGHT_PREFIX = "%LMQ%"
NAME_BYTES_MAX = 127  # RocketMQ's limit for a topic

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_SPECIAL = {ord("/"): "%", ord("+"): "|p", ord("#"): "|h"}
_HASH_DIGITS = 40  # as the gateway has it, or the queue is another one


class MessageQueue(NamedTuple):
    """One queue of a topic on one broker. Of a light queue the topic is its name, and the number 0."""

    topic: str
    broker_name: str
    queue_id: int


def mqtt_queue(topic_filter: str) -> str:
    """Return the light queue of an MQTT topic filter, such as `site/+/temp`.

    Raises:
        ValueError: It is no topic filter.
    """
    check_is("topic_filter", topic_filter, str)
    *above, last = topic_filter.split("/")
    if not topic_filter or "\0" in topic_filter:
        raise ValueError(f"topic filter {topic_filter!r} is empty, or has a character U+0000")
    if any("#" in level for level in above) or ("#" in last and last != "#"):
        raise ValueError(f"topic filter {topic_filter!r}: # is the last level, and the whole of it, as in a/#")
    if any("+" in level and level != "+" for level in (*above, last)):
        raise ValueError(f"topic filter {topic_filter!r}: + is the whole of a level, as in a/+/b")
    return _bounded("mqtt", _encode(topic_filter))


def amqp_queue(queue: str, vhost: str = "/") -> str:
    """Return the light queue of an AMQP queue."""
    check_is("queue", queue, str)
    check_is("vhost", vhost, str)
    return _bounded("amqp", f"{_encode(vhost).replace('%', '|2f')}%{_encode(queue)}")


def _encode(text: str) -> str:
    return "".join(chr(byte) if byte in _PLAIN else _SPECIAL.get(byte, f"|{byte:02x}") for byte in text.encode())


def _bounded(kind: str, encoded: str) -> str:
    name = f"{LIGHT_PREFIX}{kind}%{encoded}"
    if len(name) <= NAME_BYTES_MAX:
        return name
    return f"{LIGHT_PREFIX}{kind}%|z{hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]}"

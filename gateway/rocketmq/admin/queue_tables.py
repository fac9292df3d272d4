"""Tables by queue, as RocketMQ's tools write them: the keys are objects, which JSON does not know.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Iterable

from core.lmq.queue_name import is_light
from lmq.remoting.commands import encode_json


def encode_queue(broker_name: str, topic: str, queue_id: int) -> bytes:
    """Return a queue as a key."""
    return encode_json({"brokerName": broker_name, "queueId": queue_id, "topic": topic})


def encode_table(name: str, rows: Iterable[tuple[bytes, object]], more: dict[str, object]) -> bytes:
    """Return an object with a table by queue: rows of an encoded queue and a value, and what else it has."""
    table = b",".join(b"%b:%b" % (key, encode_json(value)) for key, value in rows)
    rest = encode_json(more)[1:]
    return b'{"%b":{%b}%b%b' % (name.encode(), table, b"," if more else b"", rest)


def topic_of(key: bytes) -> tuple[bytes, int]:
    """Return topic and number of the queue that the store has under a key."""
    if is_light(key):
        return key, 0
    topic, _, number = key.rpartition(b"/")
    return topic, int(number) if number.isdigit() else 0


def cut_table(body: bytes, name: str) -> bytes:
    """Return the table of that name in an object with tables by queue, as text; an empty one where it is not there."""
    start = body.find(b'"%b":{' % name.encode())
    if start < 0:
        return b"{}"
    start = body.index(b"{", start)
    depth = 0
    is_text = False
    at = start
    while at < len(body):
        byte = body[at : at + 1]
        if byte == b"\\":
            at += 1
        elif byte == b'"':
            is_text = not is_text
        elif not is_text:
            depth += (byte == b"{") - (byte == b"}")
            if not depth:
                return body[start : at + 1]
        at += 1
    return b"{}"

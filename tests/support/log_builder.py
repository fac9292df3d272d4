"""Real logs for the analytics: written by the store, and read back by hand for the count that Spark is held against."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.message import PublishBatch, Route
from core.properties import encode_origin, encode_properties
from core.settings import StoreSettings
from core.store.message_store import MessageStore
from tests.support.fan_out_oracle import Sent

PARENT = b"LMQ_PARENT"
_BATCH = 64
_HEAD = struct.Struct(">IIIIIQQIQ8sQ8sIQI")  # up to the body's length, with IPv4 hosts
_NOT_MESSAGES = (b"LMQ_DISPATCH_SET", b"LMQ_GAP")
_DISPATCH_NAMES = (b"INNER_MULTI_DISPATCH", b"INNER_MULTI_QUEUE_OFFSET", b"LMQ_SET")


def small_settings(**changes: object) -> StoreSettings:
    """Return settings with small segments and without waiting for the disk."""
    return StoreSettings(**({"segment_bytes": 64 * 1024, "flush": {"mode": "async"}} | changes))


def write_log(folder: Path, messages: Sequence[Sent], settings: StoreSettings) -> None:
    """Append `messages` to the log in `folder`, in order, each with a body of its number and `body_bytes` long."""
    store = MessageStore.open(folder, settings, now_ms=messages[0].stored_ms if messages else 0)
    try:
        routes: dict[tuple[object, ...], Route] = {}  # kept, as the gateway does: a set is written once a segment
        for number, sent in enumerate(messages):
            key = (sent.topic, sent.queues)
            if key not in routes:
                prefix = encode_properties([(b"LMQ_TOPIC", sent.topic.encode())])
                routes[key] = store.make_route(PARENT, 0, prefix, [queue.encode() for queue in sent.queues])
            _append(store, number, sent, routes[key])
        store.flush()
    finally:
        store.close()


def _append(store: MessageStore, number: int, sent: Sent, route: Route) -> None:
    body = b"%d " % number + b"x" * (sent.body_bytes - len(b"%d " % number))
    batch = PublishBatch(_BATCH)
    batch.buf = body
    if sent.protocol != "rocketmq":
        batch.origin = encode_origin(sent.protocol.encode(), (sent.device or "").encode(), b"ann")
    batch.topics.append(sent.topic.encode())
    batch.routes.append(route)
    batch.body_end[0] = len(body)
    batch.born_ms[0] = sent.born_ms or 0
    batch.count = 1
    store.append_batch(batch, sent.stored_ms)


@dataclass(frozen=True)
class PlainRecord:
    """One message of a log, as read by hand."""

    physical_offset: int
    topic: str
    properties: dict[bytes, bytes]
    body: bytes
    born_ms: int
    stored_ms: int
    record_bytes: int
    dispatch_bytes: int


def read_plainly(folder: Path) -> Iterator[PlainRecord]:
    """Yield the messages of a log without any of the product's code; dispatch sets and gaps are left out."""
    for path in sorted((folder / "commitlog").iterdir()):
        yield from _read_segment(path.read_bytes())


def _read_segment(data: bytes) -> Iterator[PlainRecord]:
    at = 0
    while at + _HEAD.size <= len(data):
        fields = _HEAD.unpack_from(data, at)
        size, magic = fields[0], fields[1]
        if size == 0 or magic == 0xCBD43194:
            return
        body_at = at + _HEAD.size
        topic_at = body_at + fields[14]
        topic = data[topic_at + 1 : topic_at + 1 + data[topic_at]]
        properties = data[topic_at + 1 + len(topic) + 2 : at + size]
        if topic not in _NOT_MESSAGES:
            yield _plain_record(fields, data[body_at:topic_at], topic, properties)
        at += size


def _plain_record(fields: tuple[int, ...], body: bytes, topic: bytes, encoded: bytes) -> PlainRecord:
    found = dict(piece.split(b"\x01", 1) for piece in encoded.split(b"\x02") if piece)
    listed = sum(len(name) + len(found[name]) + 2 for name in _DISPATCH_NAMES if name in found)
    return PlainRecord(
        physical_offset=fields[6],
        topic=found.get(b"LMQ_TOPIC", topic).decode(),
        properties=found,
        body=body,
        born_ms=fields[8],
        stored_ms=fields[10],
        record_bytes=fields[0],
        dispatch_bytes=listed,
    )


def sent_as_stored(folder: Path, messages: Sequence[Sent]) -> list[Sent]:
    """Return what lies in the log, with the sizes found there and the queues as they were sent."""
    stored = []
    for record in read_plainly(folder):
        sent = messages[int(record.body.split(b" ")[0])]
        device = record.properties.get(b"LMQ_CLIENT")
        stored.append(
            Sent(
                device=None if device is None else device.decode(),
                topic=record.topic,
                queues=tuple(dict.fromkeys(sent.queues)),
                stored_ms=record.stored_ms,
                record_bytes=record.record_bytes,
                body_bytes=len(record.body),
                dispatch_bytes=record.dispatch_bytes,
                protocol=record.properties.get(b"LMQ_PROTOCOL", b"rocketmq").decode(),
                born_ms=record.born_ms,
            )
        )
    return stored

"""A stored message as operators read it."""

from __future__ import annotations

import base64
import struct
from typing import Any

from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, FLAG_RETAIN, StoredBatch
from core.properties import CLIENT, PROTOCOL, RESERVED, TOPIC, TTL_MS, USER, decode_properties
from gateway.inventory import text_of

BODY_BYTES_MAX = 16_384  # shown; the rest is only counted
Item = dict[str, Any]

# The topic's queue, and the offset in it. Source: docs/storage-format.md, "Record".
_HEAD = struct.Struct(">12xi4xq")


class StoredRecord:
    """One record of the log, copied.

    Args:
        record: The copy.
        batch: It was read into this, which is only used here.
        i: Its row there.
    """

    def __init__(self, record: bytes, batch: StoredBatch, i: int) -> None:
        at = batch.record_start[i]
        self.place = batch.physical_offset[i]
        self.store_ms = batch.store_ms[i]
        self.queue_id, self.queue_offset = _HEAD.unpack_from(record)
        self._born_ms = batch.born_ms[i]
        self._flag = batch.flag[i]
        self._body = record[batch.body_start[i] - at : batch.body_end[i] - at]
        self.properties = decode_properties(record[batch.properties_start[i] - at : batch.properties_end[i] - at])
        self.topic = bytes(batch.buf[batch.topic_start[i] : batch.topic_end[i]])  # the publisher's
        self.is_rocketmq = self.properties.get(PROTOCOL) in {None, b"rocketmq"}

    def tell(self) -> Item:
        """Return what is to be known of it; times are in milliseconds since 1970."""
        marked = self._flag & FLAG_MARK_MASK == FLAG_MARK
        ttl = self.properties.get(TTL_MS, b"")
        return {
            "id": str(self.place),
            "topic": text_of(self.topic),
            "stored_at_ms": self.store_ms,
            "published_at_ms": self._born_ms,
            "expires_at_ms": self.store_ms + int(ttl) if ttl.isdigit() else None,
            "door": text_of(self.properties.get(PROTOCOL, b"rocketmq")),
            "client": text_of(self.properties.get(CLIENT, b"")),
            "user": text_of(self.properties.get(USER, b"")),
            "qos": self._flag & FLAG_QOS_MASK if marked else None,
            "retain": bool(marked and self._flag & FLAG_RETAIN),
            "properties": {
                text_of(name): text_of(value)
                for name, value in self.properties.items()
                if name not in RESERVED or (name.startswith(b"LMQ_") and name not in _TOLD)
            },
            **tell_body(self._body),
        }


_TOLD = frozenset({TOPIC, CLIENT, USER, PROTOCOL, TTL_MS, b"LMQ_SET"})


def tell_body(body: bytes) -> Item:
    """Return the first bytes of a body: as text where all of it is, else in base64."""
    shown = body[:BODY_BYTES_MAX]
    try:
        text = {"body": shown.decode(), "encoding": "string"}
    except UnicodeDecodeError as error:
        if len(body) > len(shown) and error.start > len(shown) - 4:  # only cut within a letter
            text = {"body": shown[: error.start].decode(), "encoding": "string"}
        else:
            text = {"body": base64.b64encode(shown).decode(), "encoding": "base64"}
    return {**text, "body_bytes": len(body), "is_cut": len(body) > len(shown)}

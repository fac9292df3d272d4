"""A stored message as operators read it."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from core.lmq.topic_space import routing_key_from_topic
from core.message import FLAG_MARK, FLAG_MARK_MASK, FLAG_QOS_MASK, FLAG_RETAIN, StoredBatch
from core.properties import (
    CLIENT,
    EXCHANGE,
    PROTOCOL,
    RESERVED,
    ROUTING_KEY,
    TOPIC,
    TTL_MS,
    USER,
    decode_properties,
)
from gateway.inventory import text_of

BODY_BYTES_MAX = 16_384  # shown; the rest is only counted
Item = dict[str, Any]

# The topic's queue, and the offset in it. Source: docs/storage-format.md, "Record".
_HEAD = struct.Struct(">12xi4xq")


class Address(NamedTuple):
    """Where a message was published: to a topic, or to an exchange, which may be b"", by a routing key."""

    topic: bytes
    exchange: bytes | None = None
    key: bytes = b""

    @classmethod
    def of(cls, topic: bytes, properties: Mapping[bytes, bytes]) -> Address:
        """Return the address that a record has; `topic` is the topic space's form of the routing key, too."""
        exchange = properties.get(EXCHANGE)
        if exchange is None:
            return cls(topic)
        key = properties.get(ROUTING_KEY)
        return cls(b"", exchange, routing_key_from_topic(topic) if key is None else key)

    @classmethod
    def at(cls, batch: StoredBatch, i: int) -> Address:
        """Return the address of one message of a batch."""
        topic = bytes(batch.buf[batch.topic_start[i] : batch.topic_end[i]])
        encoded = bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]])
        return cls.of(topic, decode_properties(encoded)) if EXCHANGE in encoded else cls(topic)

    def tell(self) -> Item:
        """Return it as it is told; exchange and routing key are None where it is a topic."""
        if self.exchange is None:
            return {"topic": text_of(self.topic), "exchange": None, "routing_key": None}
        return {"topic": "", "exchange": text_of(self.exchange), "routing_key": text_of(self.key)}


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

    @property
    def ttl_ms(self) -> int:
        """How long it lives by what its publisher said, -1 for no end."""
        ttl = self.properties.get(TTL_MS, b"")
        return int(ttl) if ttl.isdigit() else -1

    @property
    def is_at_qos_0(self) -> bool:
        """Whether its publisher sent it at QoS 0: it is sent on so, whatever a subscriber asked for."""
        return self._flag & FLAG_MARK_MASK == FLAG_MARK and not self._flag & FLAG_QOS_MASK

    @property
    def mqtt_client(self) -> bytes | None:
        """The MQTT client that published it; None where it came by another door."""
        return self.properties.get(CLIENT) if self.properties.get(PROTOCOL) == b"mqtt" else None

    def tell(self) -> Item:
        """Return what is to be known of it; times are in milliseconds since 1970."""
        marked = self._flag & FLAG_MARK_MASK == FLAG_MARK
        return {
            "id": str(self.place),
            **Address.of(self.topic, self.properties).tell(),
            "stored_at_ms": self.store_ms,
            "published_at_ms": self._born_ms,
            "expires_at_ms": self.store_ms + self.ttl_ms if self.ttl_ms >= 0 else None,
            "door": text_of(self.properties.get(PROTOCOL, b"rocketmq")),
            "client": text_of(self.properties.get(CLIENT, b"")),
            "user": text_of(self.properties.get(USER, b"")),
            "qos": self._flag & FLAG_QOS_MASK if marked else None,
            "retain": bool(marked and self._flag & FLAG_RETAIN),
            "properties": {
                text_of(name): text_of(value)
                for name, value in self.properties.items()
                if name not in RESERVED or (name.startswith(b"LMQ_") and name not in _TOLD) or name == _RETRY_TOPIC
            },
            **tell_body(self._body),
        }


_RETRY_TOPIC = b"RETRY_TOPIC"  # of RocketMQ's dead letters and messages that come again: the topic that they are of
_TOLD = frozenset({TOPIC, CLIENT, USER, PROTOCOL, TTL_MS, EXCHANGE, ROUTING_KEY, b"LMQ_SET"})


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

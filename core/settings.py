"""Settings of the core: the store's. Frozen, units in the names, unknown keys refused."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from core.reserved import RESERVED_TOPICS

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
LIMIT_MAX = (1 << 53) - 1  # what all readers of JSON know; what is reckoned of it has room in 64 bits
Limit = Annotated[int, Field(ge=0, le=LIMIT_MAX)]  # a count, size, rate or time that nothing else bounds
Positive = Annotated[int, Field(ge=1, le=LIMIT_MAX)]  # the same, where 0 means nothing
_TOPIC = r"^[%|A-Za-z0-9_-]{1,127}$"


def _check_address(text: str) -> str:
    ipaddress.ip_address(text)
    return text


def _check_parent(topic: str) -> str:
    if topic.encode() in RESERVED_TOPICS:
        raise ValueError("this topic is the log's own")
    return topic


_Host = Annotated[str, AfterValidator(_check_address)]
_Hour = Annotated[int, Field(ge=0, le=23)]
_ParentTopic = Annotated[str, Field(pattern=_TOPIC), AfterValidator(_check_parent)]


class FlushSettings(BaseModel, frozen=True, extra="forbid"):
    """When appended records are forced to disk (LMQ_STORE__FLUSH__MODE)."""

    # sync: acknowledge when the message is on disk; async: at once, and sync every interval_ms
    mode: Literal["sync", "async"] = "sync"
    # async: a power cut may lose this much; sync: consumers may get this much again after one
    interval_ms: Annotated[int, Field(ge=1, le=60_000)] = 500


class RetentionSettings(BaseModel, frozen=True, extra="forbid"):
    """How long messages are kept that no queue or session needs; needed ones stay."""

    # older segments are deleted, except for what a queue or session still needs
    age_hours: Annotated[int, Field(ge=1, le=87_600)] = 48
    # size of the whole log, above which the oldest segments are deleted; none: as large as the disk
    bytes_max: Annotated[int, Field(ge=MIB, le=LIMIT_MAX)] | None = None
    # hours of the day, local time, in which old segments are deleted; empty: at any time
    delete_hours: tuple[_Hour, ...] = ()


class StoreSettings(BaseModel, frozen=True, extra="forbid"):
    """The commit log and its indexes."""

    # size of one file of the log
    segment_bytes: Annotated[int, Field(ge=64 * KIB, le=GIB, multiple_of=4096)] = 256 * MIB
    message_bytes_max: Annotated[int, Field(ge=1, le=256 * MIB)] = 16 * MIB  # largest body; doors may accept less
    # a longer list of a message's queues is stored once and shared
    inline_dispatch_bytes: Annotated[int, Field(ge=0, le=32_000)] = 1024
    parent_topic: _ParentTopic = "LMQ_PARENT"  # topic that MQTT and AMQP messages are stored on
    # host in records and message ids, where RocketMQ clients ask for a message; none: the broker's address
    store_host: _Host | None = None
    # port in records and message ids; none: the broker's
    store_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    # below this free room publishers are held back; 0: only when the disk is full
    disk_free_bytes_min: Annotated[int, Field(ge=0, le=1 << 62)] = 256 * MIB
    # names of light queues and topics' queues, which are kept for good (160 B each)
    queues_max: Annotated[int, Field(ge=1_000, le=100_000_000)] = 10_000_000
    segments_mapped_max: Annotated[int, Field(ge=2, le=4096)] = 64  # full segments that stay mapped for readers
    accept_loss: bool = False  # start although the log lacks data that was on disk before; else the start is refused
    flush: FlushSettings = FlushSettings()
    retention: RetentionSettings = RetentionSettings()

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

    mode: Literal["sync", "async"] = "sync"  # sync: before the acknowledgement; async: every interval_ms
    interval_ms: Annotated[int, Field(ge=1, le=60_000)] = 500  # async: lost with the machine at most; sync: read again


class RetentionSettings(BaseModel, frozen=True, extra="forbid"):
    """How long messages are kept that nobody needs; those that somebody does need stay."""

    age_hours: Annotated[int, Field(ge=1, le=87_600)] = 48  # of older segments only what somebody needs is kept
    # of the whole log; None: as much as the disk takes
    bytes_max: Annotated[int, Field(ge=MIB, le=LIMIT_MAX)] | None = None
    delete_hours: tuple[_Hour, ...] = ()  # of the day, local time, when what is past its age goes; none: at any time


class StoreSettings(BaseModel, frozen=True, extra="forbid"):
    """The commit log and its indexes."""

    segment_bytes: Annotated[int, Field(ge=64 * KIB, le=GIB, multiple_of=4096)] = 256 * MIB  # of one file of the log
    message_bytes_max: Annotated[int, Field(ge=1, le=256 * MIB)] = 16 * MIB  # of a body; doors may take less
    inline_dispatch_bytes: Annotated[int, Field(ge=0, le=32_000)] = 1024  # longer lists of queues are stored once
    parent_topic: _ParentTopic = "LMQ_PARENT"  # what MQTT and AMQP messages are stored on
    store_host: _Host | None = None  # stamped on records: RocketMQ clients ask there; None: where they reach the broker
    store_port: Annotated[int, Field(ge=0, le=65_535)] | None = None  # stamped with store_host; None: the broker's
    disk_free_bytes_min: Annotated[int, Field(ge=0, le=1 << 62)] = 256 * MIB  # less holds publishers back; 0: full
    queues_max: Annotated[int, Field(ge=1_000, le=100_000_000)] = 10_000_000  # names, kept for good: 160 B each
    segments_mapped_max: Annotated[int, Field(ge=2, le=4096)] = 64  # full segments kept mapped for readers
    accept_loss: bool = False  # go on where the log lacks what was on disk before; else the start is refused
    flush: FlushSettings = FlushSettings()
    retention: RetentionSettings = RetentionSettings()

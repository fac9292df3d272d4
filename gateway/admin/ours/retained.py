"""Retained messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from core.broker import Broker
from core.message import StoredBatch
from gateway.admin.login import Looker, Member
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.stored import StoredRecord
from gateway.admin.view import View
from gateway.inventory import text_of

RETAINED = Routes()
Kept = tuple[bytes, bytes]  # topic and record


@RETAINED.get("/retained")
async def list_retained(
    view: View,
    looker: Looker,
    asked: Asked,
    topic_filter: Annotated[str, Query(alias="filter", min_length=1, max_length=4_096)] = "#",
) -> Response:
    """The topics that have a retained message and match a filter.

    A caller that is neither administrator nor monitor is told the topics that it may subscribe to.
    """
    broker = view.broker
    kind: Kind[Kept] = Kind(name=lambda kept: text_of(kept[0]), describe=lambda kept: _tell(broker, kept))
    found = broker.retained.walk(topic_filter.encode())
    return await answer_list(asked, kind, (one if one and looker.may_see_topic(one[0]) else None for one in found))


@RETAINED.get("/retained/{topic}")
async def show_retained(view: View, member: Member, topic: PathName) -> Item:
    """The retained message of a topic."""
    verdict = member.may.explain("subscribe", topic.encode())
    is_allowed = member.may.may_subscribe(topic.encode())
    member.check(f"subscribe access to topic '{topic}'", is_allowed=is_allowed, verdict=verdict)
    record = view.broker.retained.get(topic.encode())
    batch = StoredBatch(1)
    if record is None or not view.broker.read_record(record, batch):
        raise not_found(f"no retained message of '{topic}'")
    return StoredRecord(record, batch, 0).tell()


def _tell(broker: Broker, kept: Kept) -> Item:
    topic, record = kept
    batch = StoredBatch(1)
    if not broker.read_record(record, batch):
        return {"topic": text_of(topic)}
    return {
        "topic": text_of(topic),
        "payload_bytes": batch.body_end[0] - batch.body_start[0],
        "stored_at_ms": batch.store_ms[0],
    }

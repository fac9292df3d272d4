"""Transactions of RocketMQ that nobody has ended: half messages, which no consumer gets, the oldest first."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from core.message import StoredBatch
from gateway.admin.asking import read_chosen
from gateway.admin.login import Monitor
from gateway.admin.management.listing import Asked, Beside, Item, Kind, answer_list
from gateway.admin.routes import Routes
from gateway.admin.steps import Steps
from gateway.admin.stored import StoredRecord
from gateway.admin.view import AdminView, View
from gateway.inventory import text_of
from gateway.rocketmq.transactions.half import read_half

TRANSACTIONS = Routes()
COUNT_MAX = 500  # the API's largest page
LOOKED_AT_MAX = 20_000  # each is read with its body; chosen: as many as `held` reads for one answer
READ_COUNT = 32  # half messages read together, each with its whole body


@TRANSACTIONS.get("/transactions")
async def list_transactions(
    view: View, monitor: Monitor, asked: Asked, count: Annotated[int, Query(ge=1, le=COUNT_MAX)] = 100
) -> Response:
    """Transactions that wait for their end, the oldest first; `pending` is how many there are.

    `group` is the group of producers that is asked how the transaction ended, and `producers` how many of it are
    connected: with 0 nobody can be asked, and the message is given up in the end. `name` searches their topics. `count`
    is for an answer that is no page; pages, a sort and a search are of the 20,000 oldest.
    """
    del monitor
    is_plain = asked.page is None and not asked.name and not asked.sort
    left, transactions = count if is_plain else LOOKED_AT_MAX, view.rocketmq.transactions
    pending, queue_ref, offsets = transactions.waiting(min(left, READ_COUNT))
    items: list[Item] = []
    batch, steps = StoredBatch(READ_COUNT), Steps()
    while offsets:
        done = max(await read_chosen(view.broker, queue_ref, offsets, batch), 1)
        items += [_tell(view, batch, i) for i in range(batch.count)]
        left -= done
        offsets = transactions.waiting(min(left, READ_COUNT), offsets[done - 1] + 1)[2]
        await steps.rest()
    return await answer_list(asked.sorted_by("number"), KIND, items, Beside({"pending": pending}, count_max=count))


def _tell(view: AdminView, batch: StoredBatch, i: int) -> Item:
    record = bytes(batch.buf[batch.record_start[i] : batch.record_end[i]])
    told = StoredRecord(record, batch, i).tell()
    half = read_half(bytes(batch.buf[batch.properties_start[i] : batch.properties_end[i]]))
    group = "" if half is None else text_of(half.group)
    return {
        "number": batch.queue_offset[i],
        "id": told["id"],
        "topic": "" if half is None else text_of(half.space_topic or half.topic),
        "group": group,
        "producers": len(view.rocketmq.clients.producers.members(group)),
        "key": "" if half is None else text_of(half.key),
        "stored_at_ms": told["stored_at_ms"],
        "body_bytes": told["body_bytes"],
    }


KIND: Kind[Item] = Kind(name=lambda item: str(item["topic"]), describe=lambda item: item)

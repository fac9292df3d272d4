"""Messages of an AMQP queue that are published once more, consumed or not: from an offset or a moment on."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated

from fastapi import HTTPException
from pamqp.commands import Basic
from pydantic import BaseModel, Field

from core.broker import Broker
from gateway.admin.asking import open_queue
from gateway.admin.login import Member
from gateway.admin.management.amqp_link import AmqpLink, Message, open_link
from gateway.admin.management.any_names import Publish
from gateway.admin.management.failures import bad_request, not_found
from gateway.admin.management.listing import Item
from gateway.admin.management.places import get_queue, get_vhost
from gateway.admin.ours.reading import find_offset
from gateway.admin.routes import Routes
from gateway.admin.view import View
from gateway.amqp.shared_queue import SharedQueue
from gateway.amqp.stream_offset import OFFSET_MAX, STREAM_OFFSET

REPLAYING = Routes()
COUNT_MAX = 10_000  # chosen: the request is open until they were published
PREFETCH = 2  # that are on their way to be published; each may be as large as messages may be
QUIET_S = 2.0  # without a message, then those that are left are no longer kept
SECONDS_MAX = 253_402_300_799  # the end of the year 9999
COPIES = ("CC", "BCC")  # would send copies elsewhere
Name = Annotated[str, Field(min_length=1, max_length=255)]


class ReplayBody(BaseModel):
    """From where on messages are published again: `offset` or `at_ms`; without a destination to where they were."""

    vhost: str = "/"
    source: Name
    destination: Name | None = None
    offset: Annotated[int | None, Field(ge=0, le=OFFSET_MAX)] = None
    at_ms: Annotated[int | None, Field(ge=0, le=OFFSET_MAX)] = None
    count: Annotated[int, Field(ge=1, le=COUNT_MAX)] = 1_000


@REPLAYING.post("/replay")
async def replay_messages(view: View, member: Member, wanted: ReplayBody) -> Item:
    """Publish messages of a queue that the log still has to the end of a queue once more; those that are there stay.

    Those that come meanwhile are not among them. `next_offset` is where to go on; `left` were published by another
    user under its own `user_id`, which nobody else may do. Offsets in a queue with priorities are places in the log,
    and a moment counts by its second. 404, 503: the destination is gone or full; the reason says where to go on.
    """
    if (wanted.offset is None) == (wanted.at_ms is None):
        raise bad_request("say an offset or a moment, one of the two")
    vhost, broker = get_vhost(view, wanted.vhost), view.broker
    source = get_queue(vhost, wanted.source)
    destination = wanted.destination or wanted.source
    get_queue(vhost, destination)
    start, end = await _find_ends(broker, source, wanted)
    begin = start if isinstance(start, int) else 0
    replay = _Replay(destination, member.user, begin)
    async with open_link(view, member, wanted.vhost) as reading, open_link(view, member, wanted.vhost) as writing:
        # Also where there is nothing to read: the door asks for the rights before an offset is told.
        await reading.consume(wanted.source, PREFETCH, {STREAM_OFFSET: start})
        try:
            while replay.next_offset < end and replay.replayed + replay.left < wanted.count:
                if not await replay.go_on(reading, writing, end):
                    break
        except HTTPException as failure:
            raise replay.tell(failure) from failure
    if not isinstance(start, int) and not replay.replayed + replay.left:
        replay.next_offset = end  # not 0: nothing came since that moment
    return {"replayed": replay.replayed, "left": replay.left, "next_offset": replay.next_offset}


async def _find_ends(broker: Broker, source: SharedQueue, wanted: ReplayBody) -> tuple[int | datetime, int]:
    """Return where a consumer is to begin, and the offset that it ends before."""
    if source.terms.priority_max > 0:
        if wanted.at_ms is None:
            return wanted.offset or 0, broker.end_place
        return datetime.fromtimestamp(min(wanted.at_ms // 1_000, SECONDS_MAX), UTC), broker.end_place
    queue_ref = broker.find_queue(source.light_name)
    if queue_ref >= 0:
        await open_queue(broker, queue_ref)
    end = broker.max_offset(queue_ref) if queue_ref >= 0 else 0
    start = wanted.offset or 0
    if wanted.at_ms is not None and queue_ref >= 0:
        start = await find_offset(broker, queue_ref, wanted.at_ms)
    return max(start, source.first_offset), end


class _Replay:
    """One errand."""

    def __init__(self, destination: str, user: str, start: int) -> None:
        self._destination = destination
        self._user = user
        self.next_offset = start
        self.replayed = 0
        self.left = 0

    async def go_on(self, reading: AmqpLink, writing: AmqpLink, end: int) -> bool:
        """Publish the next message that is kept; return False where there is none before `end`."""
        try:
            async with asyncio.timeout(QUIET_S):
                found = await reading.next_delivery()
        except TimeoutError:
            return False
        headers = found.properties.headers or {}
        offset = headers.get(STREAM_OFFSET)
        assert isinstance(offset, int)  # the door says it of each
        if offset >= end:
            return False
        await self._publish(writing, found)
        assert isinstance(found.method, Basic.Deliver)
        reading.tell(Basic.Ack(found.method.delivery_tag or 0))
        self.next_offset = offset + 1
        return True

    def tell(self, failure: HTTPException) -> HTTPException:
        """Return a failure with how far the replay came, so that it goes on there and repeats nothing."""
        detail: object = failure.detail
        if not self.replayed + self.left or not isinstance(detail, dict):
            return failure
        how_far = f"{self.replayed} were replayed before it, {self.left} left; go on at offset {self.next_offset}"
        told = {**detail, "reason": f"{detail['reason']}; {how_far}"}
        return HTTPException(failure.status_code, told, failure.headers)

    async def _publish(self, writing: AmqpLink, found: Message) -> None:
        properties = found.properties
        if properties.user_id and properties.user_id != self._user:
            self.left += 1
            return
        kept = {
            name: value for name, value in (properties.headers or {}).items() if name not in (*COPIES, STREAM_OFFSET)
        }
        properties.headers = kept or None
        method = Publish(0, "", self._destination, True)  # noqa: FBT003 - mandatory
        if not await writing.publish(method, properties, found.body):
            raise not_found(f"no queue '{self._destination}' any more")
        self.replayed += 1

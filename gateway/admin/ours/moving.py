"""Messages that are moved from one AMQP queue to another, or back to the queues that they died in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pamqp.commands import Basic
from pydantic import BaseModel, Field

from gateway.admin.login import Member
from gateway.admin.management.amqp_link import AmqpLink, open_link
from gateway.admin.management.failures import bad_request
from gateway.admin.management.listing import Item
from gateway.admin.management.places import get_queue, get_vhost
from gateway.admin.view import View

MOVING = APIRouter()
COUNT_MAX = 10_000
DIED_IN = "x-first-death-queue"
Name = Annotated[str, Field(min_length=1, max_length=255)]


class MoveBody(BaseModel):
    """What is moved; without a destination each dead letter goes to the queue where it died first."""

    vhost: str = "/"
    source: Name
    destination: Name | None = None
    count: Annotated[int, Field(ge=1, le=COUNT_MAX)] = 1_000


@MOVING.post("/move")
async def move_messages(view: View, member: Member, wanted: MoveBody) -> Item:
    """Move messages, each only done with when it is stored anew: one that fails is in both queues, none in neither."""
    vhost = get_vhost(view, wanted.vhost)
    most = get_queue(vhost, wanted.source).pop.ready_count
    if wanted.destination is not None:
        get_queue(vhost, wanted.destination)
    moved = 0
    async with open_link(view, member, wanted.vhost) as link:
        while moved < min(wanted.count, most) and await _move_one(link, wanted):
            moved += 1
    return {"moved": moved}


async def _move_one(link: AmqpLink, wanted: MoveBody) -> bool:
    found = await link.get(wanted.source, no_ack=False)
    if found is None:
        return False
    assert isinstance(found.method, Basic.GetOk)
    headers = found.properties.headers or {}
    destination = wanted.destination or headers.get(DIED_IN)
    if not isinstance(destination, str) or not destination:
        raise bad_request("a message says in no header where it died: give a destination")
    if wanted.destination is None:
        found.properties.headers = {name: value for name, value in headers.items() if not name.startswith("x-")}
    if not await link.publish(Basic.Publish(0, "", destination, True), found.properties, found.body):  # noqa: FBT003
        raise bad_request(f"there is no queue '{destination}'")
    link.tell(Basic.Ack(found.method.delivery_tag or 0))
    return True

"""What is done to AMQP's queues."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response
from pamqp.commands import Queue
from pydantic import BaseModel

from gateway.admin.login import Member
from gateway.admin.management.amqp_link import open_link
from gateway.admin.management.any_names import DeclareQueue, DeleteQueue, PurgeQueue
from gateway.admin.management.declared import QueueBody
from gateway.admin.management.failures import CHANGED
from gateway.admin.management.places import get_queue, get_vhost
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import View

QUEUE_ACTIONS = Routes()


class ActionBody(BaseModel):
    """What mirrors are told; there are none here."""

    action: Literal["sync", "cancel_sync"]


@QUEUE_ACTIONS.put("/queues/{vhost}/{name}", status_code=201, response_class=Response, responses=CHANGED)
async def declare_queue(view: View, member: Member, vhost: PathName, name: PathName, wanted: QueueBody) -> Response:
    """Make a queue, or see that it is there as described: 201 and 204."""
    is_there = get_vhost(view, vhost).find(name) is not None
    async with open_link(view, member, vhost) as link:
        method = DeclareQueue(0, name, False, wanted.durable, False, wanted.auto_delete, False, wanted.arguments)  # noqa: FBT003
        await link.call(method, Queue.DeclareOk)
    return Response(status_code=204 if is_there else 201)


@QUEUE_ACTIONS.delete("/queues/{vhost}/{name}", status_code=204)
async def delete_queue(
    view: View,
    member: Member,
    vhost: PathName,
    name: PathName,
    if_empty: Annotated[bool, Query(alias="if-empty")] = False,  # noqa: FBT002
    if_unused: Annotated[bool, Query(alias="if-unused")] = False,  # noqa: FBT002
) -> None:
    """Delete a queue."""
    get_queue(get_vhost(view, vhost), name)
    async with open_link(view, member, vhost) as link:
        await link.call(DeleteQueue(0, name, if_unused, if_empty), Queue.DeleteOk)


@QUEUE_ACTIONS.delete("/queues/{vhost}/{name}/contents", status_code=204)
async def purge_queue(view: View, member: Member, vhost: PathName, name: PathName) -> None:
    """Drop all messages that no consumer has."""
    get_queue(get_vhost(view, vhost), name)
    async with open_link(view, member, vhost) as link:
        await link.call(PurgeQueue(0, name), Queue.PurgeOk)


@QUEUE_ACTIONS.post("/queues/{vhost}/{name}/actions", status_code=204)
async def act_on_queue(view: View, member: Member, vhost: PathName, name: PathName, action: ActionBody) -> None:
    """See that there are no mirrors to be brought up to date."""
    del member, action
    get_queue(get_vhost(view, vhost), name)

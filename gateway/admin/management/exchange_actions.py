"""What is done to AMQP's exchanges."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pamqp.commands import Exchange

from gateway.admin.login import Member
from gateway.admin.management.amqp_link import open_link
from gateway.admin.management.any_names import DeclareExchange, DeleteExchange
from gateway.admin.management.declared import ExchangeBody
from gateway.admin.management.failures import CHANGED
from gateway.admin.management.places import get_exchange, get_vhost
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import View

EXCHANGE_ACTIONS = Routes()


@EXCHANGE_ACTIONS.put("/exchanges/{vhost}/{name}", status_code=201, response_class=Response, responses=CHANGED)
async def declare_exchange(
    view: View, member: Member, vhost: PathName, name: PathName, wanted: ExchangeBody
) -> Response:
    """Make an exchange, or see that it is there as described: 201 and 204."""
    is_there = get_vhost(view, vhost).exchanges.find(name) is not None
    method = DeclareExchange(
        exchange=name,
        exchange_type=wanted.type,
        durable=wanted.durable,
        auto_delete=wanted.auto_delete,
        internal=wanted.internal,
        arguments=wanted.arguments,
    )
    async with open_link(view, member, vhost) as link:
        await link.call(method, Exchange.DeclareOk)
    return Response(status_code=204 if is_there else 201)


@EXCHANGE_ACTIONS.delete("/exchanges/{vhost}/{name}", status_code=204)
async def delete_exchange(
    view: View,
    member: Member,
    vhost: PathName,
    name: PathName,
    if_unused: Annotated[bool, Query(alias="if-unused")] = False,  # noqa: FBT002
) -> None:
    """Delete an exchange."""
    found = get_exchange(get_vhost(view, vhost), name)
    async with open_link(view, member, vhost) as link:
        await link.call(DeleteExchange(0, found.name, if_unused), Exchange.DeleteOk)

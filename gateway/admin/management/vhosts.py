"""AMQP's virtual hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import Response
from pydantic import BaseModel, BeforeValidator, Field

from gateway.admin.login import Administrator, Looker
from gateway.admin.management.failures import CHANGED, bad_request
from gateway.admin.management.keeping import keep
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.management.names import NODE
from gateway.admin.management.places import find_scope, find_vhosts, get_vhost, see_vhost
from gateway.admin.management.vhost_stats import tell_stats
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.totals import VhostTotals
from gateway.admin.view import AdminView, View
from gateway.amqp.argument_rules import CLASSIC, TYPES
from gateway.amqp.queues import VirtualHost
from gateway.settings.models import VHOST_BYTES_MAX

VHOSTS = Routes()
WAIT_S = 20.0  # for a deletion; it goes on afterwards
TEXT_MAX = 4_096  # chosen: some paragraphs of text
TAGS_MAX = 100  # chosen, as for users


def _split(value: object) -> object:
    """Return a list where tags come with commas between them."""
    return [tag.strip() for tag in value.split(",") if tag.strip()] if isinstance(value, str) else value


Tags = Annotated[list[Annotated[str, Field(max_length=255)]], Field(max_length=TAGS_MAX)]


class VhostBody(BaseModel):
    """What is said of a virtual host; where a part is not, it stays what it was."""

    description: Annotated[str | None, Field(max_length=TEXT_MAX)] = None
    tags: Annotated[Tags | None, BeforeValidator(_split)] = None
    default_queue_type: Literal["", "classic", "quorum", "stream", "undefined"] | None = None
    tracing: Literal[False] | None = None


@VHOSTS.get("/vhosts")
async def list_vhosts(view: View, looker: Looker, asked: Asked) -> Response:
    """All virtual hosts."""
    totals = dict((await view.totals.find()).by_vhost)
    kind = Kind[VirtualHost](name=lambda vhost: vhost.name, describe=lambda vhost: tell_vhost(view, vhost, totals))
    return await answer_list(asked, kind, find_vhosts(view, find_scope(view, looker, None)))


@VHOSTS.get("/vhosts/{name}")
async def show_vhost(view: View, looker: Looker, name: PathName) -> Item:
    """One virtual host."""
    vhost = see_vhost(view, looker, name)
    return tell_vhost(view, vhost, dict((await view.totals.find()).by_vhost))


@VHOSTS.put("/vhosts/{name}", status_code=201, response_class=Response, responses=CHANGED)
async def make_vhost(
    view: View, administrator: Administrator, name: PathName, said: VhostBody | None = None
) -> Response:
    """Make a virtual host, or say other things of one that is there: 201 and 204."""
    del administrator
    if not 0 < len(name.encode()) <= VHOST_BYTES_MAX:
        raise bad_request(f"the name of a virtual host has 1 to {VHOST_BYTES_MAX} bytes")
    await _wait_until_gone(view, name)
    is_there = view.vhosts.find(name) is not None
    profile = view.vhosts.make(name).profile
    if said is not None and said.description is not None:
        profile = profile._replace(description=said.description)
    if said is not None and said.tags is not None:
        profile = profile._replace(tags=tuple(said.tags))
    if said is not None and said.default_queue_type is not None:
        kind = said.default_queue_type
        profile = profile._replace(queue_type=kind if kind in TYPES and kind != CLASSIC else "")
    view.vhosts.make(name, profile)
    await keep(view.broker)
    return Response(status_code=204 if is_there else 201)


@VHOSTS.delete("/vhosts/{name}", status_code=204)
async def delete_vhost(view: View, administrator: Administrator, name: PathName) -> Response:
    """Delete a virtual host with all in it; 202: that goes on, and outlives a kill."""
    del administrator
    view.vhosts.delete(get_vhost(view, name), view.begin_read(0))
    await keep(view.broker)
    try:
        async with asyncio.timeout(WAIT_S):
            await _wait_until_gone(view, name)
    except TimeoutError:
        return Response(status_code=202)
    await keep(view.broker)
    return Response(status_code=204)


async def _wait_until_gone(view: AdminView, name: str) -> None:
    """Return when nothing is left of a virtual host that was deleted."""
    gone = asyncio.Event()
    view.vhosts.when_gone(name, gone.set)
    await gone.wait()


def tell_vhost(view: AdminView, vhost: VirtualHost, totals: Mapping[str, VhostTotals]) -> Item:
    """Return a virtual host as the API tells it."""
    profile = vhost.profile
    messages = totals.get(vhost.name, VhostTotals())
    tags = list(profile.tags)
    kind = profile.queue_type or "undefined"
    return {
        "name": vhost.name,
        "description": profile.description,
        "tags": tags,
        "default_queue_type": kind,
        "metadata": {"description": profile.description, "tags": tags, "default_queue_type": kind},
        "tracing": False,
        "cluster_state": {NODE: "running"},
        "messages": messages.ready + messages.unacked,
        "messages_ready": messages.ready,
        "messages_unacknowledged": messages.unacked,
        "message_stats": tell_stats(view, [vhost]),
        "lmq": {
            "queues": len(vhost),
            "connections": len(vhost.connections),
            "limits": profile.limits,
            "has_mqtt_topics": vhost.exchanges.topic_space is not None,
        },
    }

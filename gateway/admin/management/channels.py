"""Channels of AMQP connections, and their consumers."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Response

from gateway.admin.login import Caller, Looker
from gateway.admin.management.connections import peer_of
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Asked, Item, Kind, answer_list
from gateway.admin.management.names import NODE
from gateway.admin.management.places import Scope, find_scope, see_vhost
from gateway.admin.paths import PathName
from gateway.admin.steps import walk
from gateway.admin.view import AdminView, View
from gateway.inventory import ChannelEntry, ConsumerEntry

CHANNELS = APIRouter()


@CHANNELS.get("/channels")
async def list_channels(view: View, looker: Looker, asked: Asked) -> Response:
    """The channels of all connections."""
    return await answer_list(asked, CHANNEL, _channels(view, looker))


@CHANNELS.get("/channels/{name}")
async def show_channel(view: View, looker: Looker, name: PathName) -> Item:
    """One channel, by its name."""
    async for entry in walk(_channels(view, looker)):
        if entry.name == name:
            return tell_channel(entry)
    raise not_found(f"no channel '{name}'")


@CHANNELS.get("/connections/{name}/channels")
async def list_channels_of(view: View, looker: Looker, asked: Asked, name: PathName) -> Response:
    """The channels of one connection."""
    entries = _channels(view, looker)
    return await answer_list(asked, CHANNEL, (one if one and one.connection.name == name else None for one in entries))


@CHANNELS.get("/vhosts/{vhost}/channels")
async def list_channels_in(view: View, looker: Looker, asked: Asked, vhost: PathName) -> Response:
    """The channels of connections to a virtual host."""
    see_vhost(view, looker, vhost)
    entries = _channels(view, looker)
    return await answer_list(
        asked, CHANNEL, (one if one and one.connection.vhost == vhost else None for one in entries)
    )


@CHANNELS.get("/consumers")
async def list_consumers(view: View, looker: Looker, asked: Asked) -> Response:
    """The consumers of all virtual hosts."""
    return await answer_list(asked, CONSUMER, _in_scope(view, find_scope(view, looker, None)))


@CHANNELS.get("/consumers/{vhost}")
async def list_consumers_in(view: View, looker: Looker, asked: Asked, vhost: PathName) -> Response:
    """The consumers of one virtual host."""
    return await answer_list(asked, CONSUMER, _in_scope(view, find_scope(view, looker, vhost)))


def _channels(view: AdminView, caller: Caller) -> Iterator[ChannelEntry | None]:
    """Go through the channels that somebody is told of."""
    entries = view.amqp.inventory().channels()
    return (one if one and caller.may_see_user(one.connection.user) else None for one in entries)


def _in_scope(view: AdminView, scope: Scope) -> Iterator[ConsumerEntry | None]:
    entries = view.amqp.inventory().consumers()
    return (one if one and (scope is None or one.channel.connection.vhost in scope) else None for one in entries)


def tell_channel(entry: ChannelEntry) -> Item:
    """Return a channel as the API tells it."""
    connection = entry.connection
    return {
        "name": entry.name,
        "number": entry.number,
        "vhost": connection.vhost,
        "user": connection.user or "",
        "node": NODE,
        "state": "running",
        "connection_details": {"name": connection.name, **peer_of(connection)},
        "consumer_count": entry.consumers,
        "messages_unacknowledged": entry.unacked,
        "messages_unconfirmed": entry.unconfirmed,
        "prefetch_count": entry.prefetch,
        "global_prefetch_count": entry.prefetch_global,
        "confirm": entry.is_confirming,
        "transactional": entry.is_transactional,
    }


def tell_consumer(entry: ConsumerEntry) -> Item:
    """Return a consumer as the API tells it."""
    channel, connection = entry.channel, entry.channel.connection
    return {
        "consumer_tag": entry.tag,
        "queue": {"name": entry.queue, "vhost": connection.vhost},
        "ack_required": entry.is_acknowledging,
        "exclusive": entry.is_exclusive,
        "active": entry.is_active,
        "activity_status": "up" if entry.is_active else "waiting",
        "prefetch_count": entry.prefetch,
        "arguments": {},
        "channel_details": {
            "name": channel.name,
            "number": channel.number,
            "connection_name": connection.name,
            "user": connection.user or "",
            "node": NODE,
            **peer_of(connection),
        },
    }


CHANNEL: Kind[ChannelEntry] = Kind(name=lambda entry: entry.name, describe=tell_channel)
CONSUMER: Kind[ConsumerEntry] = Kind(name=lambda entry: entry.tag, describe=tell_consumer)

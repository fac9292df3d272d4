"""Channels of AMQP connections, and their consumers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fastapi import Response

from gateway.admin.login import Caller, Looker
from gateway.admin.management.connections import peer_of
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Asked, Item, Kind, Question, answer_kept, answer_list
from gateway.admin.management.names import NODE
from gateway.admin.management.places import Scope, find_scope, see_vhost
from gateway.admin.paths import PathName
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.roster import Roster
from gateway.admin.rosters.walked_parts import WalkedPart
from gateway.admin.routes import Routes
from gateway.admin.steps import walk
from gateway.admin.view import AdminView, View
from gateway.amqp.inventory import AmqpInventory, OpenChannel, OpenConsumer, channels_of
from gateway.inventory import ChannelEntry, ConnectionEntry, ConsumerEntry

CHANNELS = Routes()


@CHANNELS.get("/channels")
async def list_channels(view: View, looker: Looker, asked: Asked) -> Response:
    """The channels of all connections."""
    return await _list_channels(view, looker, asked, None)


async def _list_channels(view: AdminView, looker: Looker, asked: Question, vhost: str | None) -> Response:
    """Answer with the channels to a virtual host, or all: of a kept list, if all may be told of."""
    if looker.sees_all:
        inventory = view.amqp.inventory()
        kept = view.rosters.get(("channels", vhost), lambda: ChannelRoster(inventory, vhost))
        return await answer_kept(asked, CHANNEL, kept)
    entries = _channels(view, looker)
    return await answer_list(
        asked, CHANNEL, (one if one and vhost in {None, one.connection.vhost} else None for one in entries)
    )


@CHANNELS.get("/channels/{name}")
async def show_channel(view: View, looker: Looker, name: PathName) -> Item:
    """One channel, by its name."""
    connection, _, _ = name.rpartition(" (")
    async for entry in walk(_channels_of(view, looker, connection)):
        if entry.name == name:
            return tell_channel(entry)
    raise not_found(f"no channel '{name}'")


@CHANNELS.get("/connections/{name}/channels")
async def list_channels_of(view: View, looker: Looker, asked: Asked, name: PathName) -> Response:
    """The channels of one connection."""
    return await answer_list(asked, CHANNEL, _channels_of(view, looker, name))


@CHANNELS.get("/vhosts/{vhost}/channels")
async def list_channels_in(view: View, looker: Looker, asked: Asked, vhost: PathName) -> Response:
    """The channels of connections to a virtual host."""
    return await _list_channels(view, looker, asked, see_vhost(view, looker, vhost).name)


@CHANNELS.get("/consumers")
async def list_consumers(view: View, looker: Looker, asked: Asked) -> Response:
    """The consumers of all virtual hosts."""
    return await _list_consumers(view, asked, find_scope(view, looker, None))


@CHANNELS.get("/consumers/{vhost}")
async def list_consumers_in(view: View, looker: Looker, asked: Asked, vhost: PathName) -> Response:
    """The consumers of one virtual host."""
    return await _list_consumers(view, asked, find_scope(view, looker, vhost))


async def _list_consumers(view: AdminView, asked: Question, scope: Scope) -> Response:
    inventory = view.amqp.inventory()
    roster = view.rosters.get(("consumers", scope), lambda: ConsumerRoster(inventory, scope))
    return await answer_kept(asked, CONSUMER, roster)


class ChannelRoster(Roster[str, ChannelEntry]):
    """The channels of all connections, or of those to a virtual host."""

    def __init__(self, inventory: AmqpInventory, vhost: str | None) -> None:
        super().__init__()
        self._inventory = inventory
        self._vhost = vhost

    def sources(self) -> Iterable[str]:
        """Return the one place where they are."""
        return ("amqp",)

    def open(self, source: str) -> Part[ChannelEntry]:
        """Return them."""
        del source
        inventory = self._inventory
        scope = None if self._vhost is None else frozenset({self._vhost})
        return WalkedPart(
            partial(_open_in, inventory, scope),
            inventory.name_channel,
            inventory.describe_channel,
            inventory.channel_changes,
        )


class ConsumerRoster(Roster[str, ConsumerEntry]):
    """The consumers in some virtual hosts, or in all."""

    def __init__(self, inventory: AmqpInventory, scope: Scope) -> None:
        super().__init__()
        self._inventory = inventory
        self._scope = scope

    def sources(self) -> Iterable[str]:
        """Return the one place where they are."""
        return ("amqp",)

    def open(self, source: str) -> Part[ConsumerEntry]:
        """Return them."""
        del source
        inventory = self._inventory
        return WalkedPart(
            partial(_in_scope, inventory, self._scope),
            lambda found: _consumer_name(found[1].queue.name, found[1].tag),
            inventory.describe_consumer,
            inventory.channel_changes,
        )


def _channels(view: AdminView, caller: Caller) -> Iterator[ChannelEntry | None]:
    """Go through the channels that a caller is told of."""
    entries = view.amqp.inventory().channels()
    return (one if one and caller.may_see_user(one.connection.user) else None for one in entries)


def _channels_of(view: AdminView, caller: Caller, connection: str) -> Iterator[ChannelEntry | None]:
    """Go through the channels of a connection that a caller is told of."""
    inventory = view.amqp.inventory()
    for one in inventory.named(connection):
        entries = [] if one is None else [inventory.describe_channel((one, channel)) for channel in channels_of(one)]
        yield from (entry for entry in entries if entry is not None and caller.may_see_user(entry.connection.user))
        yield None


def _open_in(inventory: AmqpInventory, scope: Scope) -> Iterator[OpenChannel | None]:
    for found in inventory.open_channels():
        vhost = None if found is None else found[0].vhost
        yield found if scope is None or (vhost is not None and vhost.name in scope) else None


def _in_scope(inventory: AmqpInventory, scope: Scope) -> Iterator[OpenConsumer | None]:
    for found in inventory.open_consumers():
        vhost = None if found is None else found[0][0].vhost
        yield found if scope is None or (vhost is not None and vhost.name in scope) else None


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
        "lmq": _client_of(connection),
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
        "consumer_timeout": entry.timeout_ms,
        "arguments": {},
        "channel_details": {
            "name": channel.name,
            "number": channel.number,
            "connection_name": connection.name,
            "user": connection.user or "",
            "node": NODE,
            **peer_of(connection),
        },
        "lmq": _client_of(connection),
    }


def _client_of(connection: ConnectionEntry) -> Item:
    """Return what people know the connection by: its number in the log, and what the client calls itself."""
    return {"number": connection.conn_id, "client": connection.client}


def _consumer_name(queue: str, tag: str) -> str:
    """Return what consumers are listed by: those of one queue stand together, and are found by its name."""
    return f"{queue} {tag}"


CHANNEL: Kind[ChannelEntry] = Kind(
    name=lambda entry: entry.name,
    describe=tell_channel,
    figures={
        "consumer_count": lambda entry: entry.consumers,
        "messages_unacknowledged": lambda entry: entry.unacked,
        "messages_unconfirmed": lambda entry: entry.unconfirmed,
        "number": lambda entry: entry.number,
        "prefetch_count": lambda entry: entry.prefetch,
        "user": lambda entry: entry.connection.user or "",
        "vhost": lambda entry: entry.connection.vhost,
    },
)
CONSUMER: Kind[ConsumerEntry] = Kind(
    name=lambda entry: _consumer_name(entry.queue, entry.tag),
    describe=tell_consumer,
    figures={"consumer_tag": lambda entry: entry.tag, "prefetch_count": lambda entry: entry.prefetch},
)

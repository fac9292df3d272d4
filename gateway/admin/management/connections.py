"""Connections of all doors; what has happened to them, and their end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

from fastapi import Header, Query, Response

from gateway.admin.login import Administrator, Caller, Looker
from gateway.admin.management.failures import bad_request, not_found
from gateway.admin.management.listing import Asked, Item, Kind, Question, answer_kept, answer_list, encode
from gateway.admin.management.names import NODE
from gateway.admin.management.places import see_vhost
from gateway.admin.paths import PathName
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.roster import Roster
from gateway.admin.rosters.walked_parts import WalkedPart
from gateway.admin.routes import Routes
from gateway.admin.steps import walk
from gateway.admin.view import AdminView, View
from gateway.inventory import ConnectionEntry, take_each

CONNECTIONS = Routes()
PROTOCOLS = {"amqp": "AMQP 0-9-1", "mqtt": "MQTT", "rocketmq": "RocketMQ"}
REASON = "Closed via management API"
Placed = tuple[str, ConnectionEntry]  # with the door
About = Annotated[str, Query(max_length=1_000)]


@CONNECTIONS.get("/connections")
async def list_connections(view: View, looker: Looker, asked: Asked, about: About = "") -> Response:
    """The open connections of all doors; with `about` those with that text in their name, client or user."""
    return await _search(view, looker, asked, about) if about else await _list(view, looker, asked)


@CONNECTIONS.get("/vhosts/{vhost}/connections")
async def list_connections_in(view: View, looker: Looker, asked: Asked, vhost: PathName, about: About = "") -> Response:
    """The open connections to a virtual host; with `about` those with that text in their name, client or user."""
    place = see_vhost(view, looker, vhost).name
    if about:
        return await _search(view, looker, asked, about, vhost=place)
    return await _list(view, looker, asked, vhost=place)


@CONNECTIONS.get("/connections/username/{user}")
async def list_connections_of(view: View, looker: Looker, asked: Asked, user: PathName) -> Response:
    """The open connections of a user."""
    return await _list(view, looker, asked, user=user)


async def _search(view: AdminView, looker: Looker, asked: Question, about: str, vhost: str | None = None) -> Response:
    """Answer with the connections that have a text in their name, client or user: all, or those to a virtual host."""
    if asked.name:
        raise bad_request("give name or about")
    about_one = KIND._replace(name=_words_of, figures={**KIND.figures, "name": KIND.name})
    words = asked.model_copy(update={"name": about, "use_regex": False})
    return await answer_list(words, about_one, _walk_seen(view, looker, Wanted(vhost=vhost)))


async def _list(
    view: AdminView, looker: Looker, asked: Question, user: str | None = None, vhost: str | None = None
) -> Response:
    """Answer with the connections of a user or to a virtual host, or all: of a kept list, if all may be told of."""
    wanted = Wanted(user, vhost)
    if looker.sees_all:
        kept = view.rosters.get(("connections", wanted), lambda: ConnectionRoster(view, wanted))
        rows = view.rosters.rows
        kind = KIND._replace(
            write=lambda placed: rows.get(
                ("connection", placed[1].conn_id), placed, lambda: encode(tell_connection(placed))
            )
        )
        return await answer_kept(asked, kind, kept)
    return await answer_list(asked, KIND, _walk_seen(view, looker, wanted))


class Wanted(NamedTuple):
    """Which connections are listed, None for any."""

    user: str | None = None
    vhost: str | None = None

    def has(self, place: tuple[str | None, str]) -> bool:
        """Return whether a connection of this user and virtual host is."""
        return self.user in {None, place[0]} and self.vhost in {None, place[1]}


@CONNECTIONS.delete("/connections/username/{user}", status_code=204)
async def close_connections_of(
    view: View,
    administrator: Administrator,
    user: PathName,
    x_reason: Annotated[str, Header(max_length=200)] = REASON,
) -> None:
    """Close the connections of a user, as one is closed."""
    del administrator
    async for one in walk(_open_of(view, user)):
        one.turn_out(view.begin_read(0), x_reason)


def _open_of(view: AdminView, user: str) -> Iterator[Any | None]:
    """Give the open connections of a user as their doors have them."""
    for door in view.doors.values():
        inventory = door.inventory()
        for one in take_each(inventory.open_connections()):
            is_its = inventory.place_of(one)[0] == user and inventory.describe_open(one) is not None
            yield one if is_its else None


@CONNECTIONS.get("/connections/{name}")
async def show_connection(view: View, looker: Looker, name: PathName) -> Item:
    """One connection, by its name or its number in the log."""
    return tell_connection(await find_connection(view, name, looker))


@CONNECTIONS.delete("/connections/{name}", status_code=204)
async def close_connection(
    view: View,
    administrator: Administrator,
    name: PathName,
    x_reason: Annotated[str, Header(max_length=200)] = REASON,
) -> None:
    """Close a connection; clients of AMQP are told the reason that the header X-Reason gives."""
    door, entry = await find_connection(view, name, administrator)
    if not view.doors[door].inventory().turn_out(entry.conn_id, x_reason, view.begin_read(0)):
        raise not_found(f"no connection '{name}'")


class ConnectionRoster(Roster[str, Placed]):
    """The connections of all doors, or some of them."""

    def __init__(self, view: AdminView, wanted: Wanted) -> None:
        super().__init__()
        self._view = view
        self._wanted = wanted

    def sources(self) -> Iterable[str]:
        """Return the names of the doors."""
        return self._view.doors

    def open(self, source: str) -> Part[Placed]:
        """Return the connections of a door."""
        inventory, wanted = self._view.doors[source].inventory(), self._wanted

        def walk_open() -> Iterator[Any | None]:
            each = take_each(inventory.open_connections())
            if wanted == Wanted():
                return each
            return (one if wanted.has(inventory.place_of(one)) else None for one in each)

        def tell(connection: Any) -> Placed | None:  # noqa: ANN401 - the door's own kind
            entry = inventory.describe_open(connection)
            return None if entry is None else (source, entry)

        def name(connection: Any) -> str:  # noqa: ANN401 - the door's own kind
            entry = inventory.describe_open(connection)
            return "" if entry is None else entry.name

        changes = inventory.connection_changes if wanted == Wanted() else None  # a login changes what one is
        return WalkedPart(walk_open, name, tell, changes)


def _words_of(placed: Placed) -> str:
    """Return what a connection is known by, in the order of names."""
    _, entry = placed
    return f"{entry.name} {entry.client} {entry.user or ''}"


def _walk_seen(view: AdminView, looker: Looker, wanted: Wanted) -> Iterator[Placed | None]:
    """Give the connections that are wanted and that the caller is told of."""
    for one in _walk(view):
        is_told = one is not None and looker.may_see_user(one[1].user) and wanted.has((one[1].user, one[1].vhost))
        yield one if is_told else None


def _walk(view: AdminView) -> Iterator[Placed | None]:
    for name, door in view.doors.items():
        for entry in door.inventory().connections():
            yield None if entry is None else (name, entry)


async def find_connection(view: AdminView, name: str, caller: Caller) -> Placed:
    """Return the connection of a name, or of a number in the log, that a caller is told of.

    Raises:
        HTTPException: 404.
    """
    for door in view.doors:
        inventory = view.doors[door].inventory()
        async for one in walk(inventory.named(name)):
            entry = inventory.describe_open(one)
            if entry is not None and caller.may_see_user(entry.user):
                return door, entry
    raise not_found(f"no connection '{name}'")


def tell_connection(placed: Placed) -> Item:
    """Return a connection as the API tells it."""
    door, entry = placed
    host, _, port = entry.local.rpartition(":")
    return {
        "name": entry.name,
        "vhost": entry.vhost,
        "user": entry.user or "",
        "protocol": PROTOCOLS[door],
        "type": "network",
        "state": state_of(entry),
        "node": NODE,
        **peer_of(entry),
        "host": host,
        "port": int(port) if port.isdigit() else 0,
        "channels": entry.channels,
        "connected_at": entry.since_ms,
        "recv_oct": entry.bytes_in,
        "send_oct": entry.bytes_out,
        "client_properties": {"connection_name": entry.client} if entry.client else {},
        **({"user_provided_name": entry.client} if entry.client else {}),
        "lmq": {"number": entry.conn_id, "door": door, "client": entry.client},
    }


def state_of(entry: ConnectionEntry) -> str:
    """Return how a connection is, in RabbitMQ's words: one that is held back is `blocked`."""
    if entry.is_held:
        return "blocked"
    return "running" if entry.user is not None else "starting"


def peer_of(entry: ConnectionEntry) -> Item:
    """Return where a connection comes from."""
    host, _, port = entry.peer.rpartition(":")
    return {"peer_host": host.strip("[]"), "peer_port": int(port) if port.isdigit() else 0}


KIND: Kind[Placed] = Kind(
    name=lambda placed: placed[1].name,
    describe=tell_connection,
    figures={
        "recv_oct": lambda placed: placed[1].bytes_in,
        "send_oct": lambda placed: placed[1].bytes_out,
        "connected_at": lambda placed: placed[1].since_ms,
        "user": lambda placed: placed[1].user or "",
        "state": lambda placed: state_of(placed[1]),
        "channels": lambda placed: placed[1].channels,
    },
)

"""Commands that list what there is, and show one of it: queues, connections, sessions, ..."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import (
    complete_channels,
    complete_connections,
    complete_retained,
    complete_sessions,
    complete_vhosts,
)
from gateway.commands.finding import show_queue
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, has, print_facts, print_json, print_table, show_answer
from gateway.commands.refusing import refuse

PAGE_SIZE = 500  # the API's largest page
NAMED_MAX = 3  # of a list in a cell: others are counted
VhostOption = Annotated[
    str | None, typer.Option("--vhost", help="Only of this virtual host.", autocompletion=complete_vhosts)
]
NameOption = Annotated[str, typer.Option("--name", help="Only rows with this in their name.")]
AboutOption = Annotated[str, typer.Option("--name", help="Only rows with this in their name, client or user.")]
SortOption = Annotated[str | None, typer.Option("--sort", help="Sort by this column, or by another field of --json.")]
ReverseOption = Annotated[bool, typer.Option("--reverse", help="Reverse the order: descending, in most lists.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=PAGE_SIZE, help="Number of rows, at most.")]
WatchOption = Annotated[float | None, typer.Option("--watch", min=0.1, help="Repeat every so many seconds.")]


class Kind(NamedTuple):
    """A kind of thing that is listed."""

    name: str
    text: str
    path: str
    columns: tuple[Column, ...]
    show: str  # the path of one, with its name in it; empty where none is shown by itself
    shows_message: bool = False  # for which one has to log in
    spare: tuple[str, ...] = ()  # columns that are left out first where a terminal is narrow
    greatest: str | None = None  # the field that is sorted by, the highest first, where nothing is said
    in_vhost: str = ""  # the path of those of one virtual host; empty where they are of none
    searched_as: str = "name"  # what the API calls a search by --name
    complete: Callable[[typer.Context, str], list[str]] | None = None  # the names that one is shown by


def _columns(**keys: str) -> tuple[Column, ...]:
    return tuple(Column(title.replace("_", " "), key) for title, key in keys.items())


KINDS = (
    Kind(
        "queues",
        "Light queues of every door.",
        "/api/lmq/queues",
        _columns(
            name="name", vhost="vhost", door="door", kept="kept", ready="messages_ready",
            unacked="messages_unacknowledged", readers="readers",
            **{"in/s": "rate_in", "out/s": "rate_out", "again/s": "rate_again"},
            next="next_offset", light_queue="light_queue",
        ),
        "/api/lmq/queues/{}",
        spare=("light queue", "next", "kept", "readers", "vhost"),
        in_vhost="/api/lmq/queues",
    ),
    Kind(
        "connections",
        "Connections of every door.",
        "/api/connections",
        _columns(
            number="lmq.number", name="name", protocol="protocol", user="user", client="lmq.client", state="state",
            vhost="vhost", channels="channels", bytes_in="recv_oct", bytes_out="send_oct", since="connected_at",
        ),
        "/api/connections/{}",
        spare=("bytes in", "bytes out", "since", "channels", "vhost", "client"),
        in_vhost="/api/vhosts/{}/connections",
        searched_as="about",
        complete=complete_connections,
    ),
    Kind(
        "channels",
        "Channels of AMQP connections.",
        "/api/channels",
        _columns(
            name="name", client="lmq.client", vhost="vhost", user="user", consumers="consumer_count",
            unacked="messages_unacknowledged",
            unconfirmed="messages_unconfirmed", prefetch="prefetch_count",
        ),
        "/api/channels/{}",
        spare=("unconfirmed", "prefetch", "vhost", "consumers", "client"),
        in_vhost="/api/vhosts/{}/channels",
        complete=complete_channels,
    ),
    Kind(
        "consumers",
        "Consumers of AMQP queues.",
        "/api/consumers",
        _columns(
            queue="queue.name", tag="consumer_tag", client="lmq.client", user="channel_details.user",
            vhost="queue.vhost", prefetch="prefetch_count", active="active", channel="channel_details.name",
        ),
        "",
        spare=("vhost", "prefetch", "user", "tag", "active", "channel"),
        in_vhost="/api/consumers/{}",
    ),
    Kind(
        "sessions",
        "MQTT sessions, connected or not.",
        "/api/lmq/sessions",
        _columns(
            client="client", user="user", connected="connected", persistent="persistent",
            subscriptions="subscriptions", inflight="inflight", again="redelivered",
        ),
        "/api/lmq/sessions/{}",
        complete=complete_sessions,
    ),
    Kind(
        "subscriptions",
        "Subscriptions of MQTT sessions, with how much waits for each.",
        "/api/lmq/subscriptions",
        _columns(
            client="client", filter="filter", qos="qos", waiting="waiting", inflight="inflight", next="next_offset",
            light_queue="light_queue",
        ),
        "",
        spare=("light queue", "next", "inflight"),
    ),
    Kind(
        "groups",
        "Groups of RocketMQ consumers and of MQTT's $share subscriptions, with their lag.",
        "/api/lmq/groups",
        _columns(
            group="group", door="door", queue="queue", lag="lag", next="next_offset", members="members",
            again="redelivered",
        ),
        "",
    ),
    Kind(
        "exchanges",
        "AMQP exchanges.",
        "/api/exchanges",
        _columns(
            name="name", vhost="vhost", type="type", durable="durable", arguments="arguments",
            **{"in/s": "message_stats.publish_in_details.rate", "out/s": "message_stats.publish_out_details.rate"},
        ),
        "",
        spare=("arguments", "durable"),
        in_vhost="/api/exchanges/{}",
    ),
    Kind(
        "bindings",
        "AMQP bindings.",
        "/api/bindings",
        _columns(
            source="source", destination="destination", type="destination_type", key="routing_key", vhost="vhost",
            arguments="arguments",
        ),
        "",
        spare=("arguments", "type", "vhost"),
        in_vhost="/api/bindings/{}",
    ),
    Kind(
        "deadletters",
        "Queues that hold dead letters; `lmq queue move QUEUE` sends them back.",
        "/api/lmq/dead-letters",
        _columns(
            name="name", vhost="vhost", door="door", messages="messages", oldest="oldest_at_ms", of="from",
            light_queue="light_queue",
        ),
        "",
        spare=("light queue", "vhost", "oldest"),
        greatest="messages",
    ),
    Kind(
        "retained",
        "Topics with a retained message.",
        "/api/lmq/retained",
        _columns(topic="topic", bytes="payload_bytes", stored="stored_at_ms"),
        "/api/lmq/retained/{}",
        shows_message=True,
        complete=complete_retained,
    ),
    Kind(
        "bridges",
        "Bridges to other MQTT brokers, and why one is not connected.",
        "/api/lmq/bridges",
        _columns(
            name="name", address="address", connected="connected", waiting="waiting", out="messages_out",
            **{"in": "messages_in"}, failures="failures", dropped="dropped", cause="cause",
        ),
        "",
        spare=("dropped", "failures", "in", "out"),
    ),
    Kind(
        "segments",
        "Files of the log, the oldest first, and what keeps old ones.",
        "/api/lmq/segments",
        _columns(
            name="name", bytes="bytes", first_written="first_written_at_ms", last_written="last_written_at_ms",
            due="due", held="held", needed="needed", **{"for": "held_for"},
        ),
        "",
        spare=("for", "first written", "needed", "due"),
    ),
)  # fmt: skip


def make_list(kind: Kind) -> Callable[..., None]:
    """Return the command that lists things of a kind."""

    def list_things(
        *,
        vhost: VhostOption = None,
        name: NameOption = "",
        sort: SortOption = None,
        reverse: ReverseOption = False,
        limit: LimitOption = 100,
        watch: WatchOption = None,
        admin: AdminOption = ADMIN,
        user: UserOption = None,
        password: PasswordOption = None,
        as_json: JsonOption = False,
    ) -> None:
        client = AdminClient(admin, user, password)
        key = _find_key(kind, sort)
        if key is None and kind.greatest is not None:
            key, reverse = kind.greatest, not reverse
        question = {"page": 1, "page_size": limit, "sort": key, "sort_reverse": reverse or None}
        question[kind.searched_as] = name or None
        path = kind.path if vhost is None else kind.in_vhost.format(quote(vhost))
        if path == kind.path:
            question["vhost"] = vhost

        def ask() -> dict[str, Any]:
            found: dict[str, Any] = client.get(path, question)
            if key is not None and found["items"] and not any(has(row, key) for row in found["items"]):
                columns = ", ".join(column.title for column in kind.columns)
                refuse(f"--sort {sort}: {kind.name} have no such field; columns are {columns}")
            return found

        show_answer(ask, partial(_tell, kind), as_json=as_json, watch=watch, key="items")

    list_things.__doc__ = kind.text
    told = inspect.signature(list_things, eval_str=True)
    shown = {name: one for name, one in told.parameters.items() if name != "vhost" or kind.in_vhost}
    if kind.searched_as == "about":
        shown["name"] = shown["name"].replace(annotation=AboutOption)
    list_things.__signature__ = told.replace(parameters=list(shown.values()))  # type: ignore[attr-defined]  # typer reads it
    return list_things


def _find_key(kind: Kind, sort: str | None) -> str | None:
    """Return the API's field for what is sorted by: what stands above a column is one, too."""
    titles = {column.title: column.key for column in kind.columns}
    return None if sort is None else titles.get(sort.replace("_", " "), sort)


def _tell(kind: Kind, found: dict[str, Any]) -> None:
    print_table(kind.columns, [_shorten(row) for row in found["items"]], kind.spare)
    if found["filtered_count"] > found["item_count"]:
        print(f"{found['item_count']} of {found['filtered_count']}")


def _shorten(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose long lists of names are told by their first; the API counts those that it leaves out."""
    return {
        name: [*value[:NAMED_MAX], f"and {row.get(f'{name}_count', len(value)) - NAMED_MAX} more"]
        if isinstance(value, list) and len(value) > NAMED_MAX
        else value
        for name, value in row.items()
    }


def make_show(kind: Kind) -> Callable[..., None]:
    """Return the command that shows one thing of a kind."""

    def show_thing(
        name: str,
        *,
        admin: AdminOption = ADMIN,
        user: UserOption = None,
        password: PasswordOption = None,
        as_json: JsonOption = False,
    ) -> None:
        found = AdminClient(admin, user, password).get(kind.show.format(quote(name)), as_member=kind.shows_message)
        (print_json if as_json else print_facts)(found)

    show_thing.__doc__ = "Show one by its name from the list."
    told = inspect.signature(show_thing, eval_str=True)
    argument = typer.Argument(help="The name from the list.", autocompletion=kind.complete)
    shown = told.parameters | {"name": told.parameters["name"].replace(annotation=Annotated[str, argument])}
    show_thing.__signature__ = told.replace(parameters=list(shown.values()))  # type: ignore[attr-defined]  # as above
    return show_thing


def add_lists(cli: typer.Typer, more: Mapping[str, Mapping[str, Callable[..., None]]]) -> None:
    """Add a group of commands for each kind of thing; `more` are other commands of a kind, by its name and theirs."""
    for kind in KINDS:
        group = typer.Typer(**PLAIN, help=f"{kind.text} Without a command: list.")
        group.command("list")(make_list(kind))
        if kind.show:
            group.command("show")(show_queue if kind.name == "queues" else make_show(kind))
        for name, command in more.get(kind.name, {}).items():
            group.command(name)(command)
        cli.add_typer(group, name=kind.name)

"""Commands for AMQP's virtual hosts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.asking import YesOption, confirm
from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_vhosts
from gateway.commands.lists import WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_done, print_table, show_answer

vhost_cli = typer.Typer(**PLAIN, help="Make, delete and list AMQP's virtual hosts.")
NameArgument = Annotated[
    str, typer.Argument(help="A virtual host, such as / or billing.", autocompletion=complete_vhosts)
]
COLUMNS = (
    Column("name", "name"),
    Column("connections", "lmq.connections"),
    Column("connections max", "lmq.limits.max-connections"),
    Column("queues", "lmq.queues"),
    Column("queues max", "lmq.limits.max-queues"),
    Column("in/s", "message_stats.publish_details.rate"),
    Column("out/s", "message_stats.deliver_get_details.rate"),
    Column("ack/s", "message_stats.ack_details.rate"),
    Column("MQTT's topics", "lmq.has_mqtt_topics"),
    Column("type of queues", "default_queue_type"),
    Column("tags", "tags"),
    Column("description", "description"),
)
SPARE = ("tags", "ack/s", "type of queues", "MQTT's topics", "queues max", "connections max")
UNDEFINED = "undefined"  # as RabbitMQ says it of a virtual host without a type of its own


@vhost_cli.command("add")
def add(
    name: NameArgument,
    *,
    description: Annotated[str | None, typer.Option(help="Description.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Tag; repeatable.")] = None,
    queue_type: Annotated[
        str | None,
        typer.Option("--default-queue-type", help="Type of queues declared without one: classic, quorum or stream."),
    ] = None,
    connections_max: Annotated[
        int | None, typer.Option("--max-connections", help="Open connections; below 0: no limit.")
    ] = None,
    queues_max: Annotated[int | None, typer.Option("--max-queues", help="Queues; below 0: no limit.")] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a virtual host, or change the properties of an existing one."""
    client = AdminClient(admin, user, password)
    said = {"description": description, "tags": tags or None, "default_queue_type": queue_type}
    client.send("PUT", f"/api/vhosts/{quote(name)}", said)
    for limit, value in (("max-connections", connections_max), ("max-queues", queues_max)):
        if value is not None:
            client.send("PUT", f"/api/vhost-limits/{quote(name)}/{limit}", {"value": value})
    print_done({"set": name}, as_json=as_json)


@vhost_cli.command("delete")
def delete(
    name: NameArgument,
    *,
    yes: YesOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a virtual host with its exchanges, queues and messages, and close its connections."""
    client = AdminClient(admin, user, password)
    found = client.ask(f"/api/vhosts/{quote(name)}")
    ours = found["lmq"]
    lost = f"{ours['queues']} queues, their messages and {ours['connections']} connections"
    topics = "; the topics of MQTT stay" if ours["has_mqtt_topics"] else ""
    confirm(f"this deletes virtual host {name!r} with {lost}{topics}", yes=yes)
    client.send("DELETE", f"/api/vhosts/{quote(name)}")
    print_done({"deleted": name}, as_json=as_json)


@vhost_cli.command("list")
def list_vhosts(
    *,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the virtual hosts with their connections, queues and rates."""
    client = AdminClient(admin, user, password)
    show_answer(lambda: client.get("/api/vhosts"), _tell, as_json=as_json, watch=watch)


def _tell(found: list[dict[str, Any]]) -> None:
    print_table(COLUMNS, rows_of(found), SPARE)


def rows_of(vhosts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return virtual hosts as rows of a table."""
    rows: list[dict[str, Any]] = []
    for vhost in vhosts:
        kind = "" if vhost["default_queue_type"] == UNDEFINED else vhost["default_queue_type"]
        rows.append({**vhost, "default_queue_type": kind, "tags": ", ".join(vhost["tags"])})
    return rows

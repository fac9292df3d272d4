"""Commands that part with clients."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.commands.asking import YesOption, confirm
from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_connections, complete_sessions
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_facts, print_json, print_listed, print_table
from gateway.commands.refusing import EXIT_MISSING, refuse

connection_cli = typer.Typer(**PLAIN, help="Close a connection.")
session_cli = typer.Typer(**PLAIN, help="End a session.")
ClientArgument = Annotated[str, typer.Argument(help="The client identifier.", autocompletion=complete_sessions)]
SUBSCRIPTIONS = (
    Column("filter", "filter"),
    Column("qos", "qos"),
    Column("waiting", "waiting"),
    Column("inflight", "inflight"),
    Column("next", "next_offset"),
    Column("light queue", "light_queue"),
)
SPARE = ("light queue", "next", "inflight")


@connection_cli.command("close")
def close(
    name: Annotated[
        str,
        typer.Argument(
            help="The connection's number or name, from `lmq connections`.", autocompletion=complete_connections
        ),
    ],
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Close a connection of any door."""
    AdminClient(admin, user, password).send("DELETE", f"/api/connections/{quote(name)}")
    print_listed({"closed": name}, [], as_json=as_json)


@session_cli.command("end")
def end(
    client_id: ClientArgument,
    *,
    yes: YesOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """End an MQTT session: its subscriptions and messages are deleted, its connection is closed."""
    client = AdminClient(admin, user, password)
    path = f"/api/lmq/sessions/{quote(client_id)}"
    if not yes:
        client.ask(path)
        confirm(
            f"this deletes session {client_id!r} with its subscriptions and the messages that wait for the client",
            yes=False,
        )
    client.send("DELETE", path)
    print_listed({"ended": client_id}, [], as_json=as_json)


def show_subscriptions(
    client_id: ClientArgument,
    topic_filter: Annotated[str | None, typer.Argument(metavar="[FILTER]", help="Only this one.")] = None,
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the subscriptions of one client, or one of them, with how much waits for each."""
    client = AdminClient(admin, user, password)
    found = client.get(f"/api/lmq/sessions/{quote(client_id)}")["subscription_details"]
    if topic_filter is None:
        if as_json:
            print_json(found)
        else:
            print_table(SUBSCRIPTIONS, found, SPARE)
        return
    one = next((one for one in found if one["filter"] == topic_filter), None)
    if one is None:
        refuse(f"client '{client_id}' has no subscription '{topic_filter}'", code=EXIT_MISSING)
    (print_json if as_json else print_facts)(one)

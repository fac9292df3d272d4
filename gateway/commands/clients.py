"""Commands that part with clients."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.commands.asking import YesOption, confirm
from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_connections, complete_sessions
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import print_listed

connection_cli = typer.Typer(**PLAIN, help="Close a connection.")
session_cli = typer.Typer(**PLAIN, help="End a session.")


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
    client_id: Annotated[str, typer.Argument(help="The client identifier.", autocompletion=complete_sessions)],
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

"""The command that tells what keeps old messages in the log."""

from __future__ import annotations

from typing import Any

import typer

from gateway.commands.client import AdminClient
from gateway.commands.lists import LimitOption, WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_table, show_answer

held_cli = typer.Typer(**PLAIN, help="Queues and sessions that keep old files of the log. Without a command: list.")
PATH = "/api/lmq/held"
COLUMNS = (
    Column("name", "name"),
    Column("kind", "kind"),
    Column("vhost", "vhost"),
    Column("stored", "stored_at_ms"),
    Column("waiting", "waiting"),
    Column("offset", "offset"),
    Column("place", "place"),
    Column("light queue", "light_queue"),
)
SPARE = ("light queue", "place", "offset", "vhost")


@held_cli.command("list")
def list_held(
    *,
    limit: LimitOption = 100,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List queues and sessions by their first unfinished message, the oldest first."""
    client = AdminClient(admin, user, password)
    show_answer(lambda: client.get(PATH, {"count": limit}), _tell, as_json=as_json, watch=watch, key="items")


def _tell(found: dict[str, Any]) -> None:
    print_table(COLUMNS, found["items"], SPARE)
    if found["not_looked_at"]:
        print(f"{found['not_looked_at']} more were not looked at")

"""The command that tells what keeps old messages in the log."""

from __future__ import annotations

import typer

from gateway.commands.client import AdminClient
from gateway.commands.lists import LimitOption, WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_json, print_table, repeat

held_cli = typer.Typer(**PLAIN, help="What keeps the log's oldest messages: queues, sessions. Without a command: list.")
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
    """List queues and sessions by the first message that each has not done, the oldest first."""
    client = AdminClient(admin, user, password)

    def show() -> None:
        found = client.get(PATH, {"count": limit})
        if as_json:
            print_json(found["items"])
            return
        print_table(COLUMNS, found["items"], SPARE)
        if found["not_looked_at"]:
            print(f"{found['not_looked_at']} more were not looked at")

    repeat(show, watch)

"""The command that tells which transactions nobody has ended."""

from __future__ import annotations

from typing import Any

import typer

from gateway.commands.client import AdminClient
from gateway.commands.lists import LimitOption, WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_table, show_answer

transactions_cli = typer.Typer(
    **PLAIN, help="Transactions of RocketMQ that no producer has ended. Without a command: list."
)
PATH = "/api/lmq/transactions"
COLUMNS = (
    Column("id", "id"),
    Column("topic", "topic"),
    Column("group", "group"),
    Column("producers", "producers"),
    Column("stored", "stored_at_ms"),
    Column("bytes", "body_bytes"),
    Column("key", "key"),
)
SPARE = ("key", "bytes")


@transactions_cli.command("list")
def list_transactions(
    *,
    limit: LimitOption = 100,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List transactions that wait for their end, the oldest first, and how many producers can be asked about each."""
    client = AdminClient(admin, user, password)
    show_answer(lambda: client.get(PATH, {"count": limit}), _tell, as_json=as_json, watch=watch, key="items")


def _tell(found: dict[str, Any]) -> None:
    print_table(COLUMNS, found["items"], SPARE)
    more = found["pending"] - len(found["items"])
    if more > 0:
        print(f"{more} more wait")

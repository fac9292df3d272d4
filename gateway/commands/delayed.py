"""Commands for messages that wait for their moment, of every door."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_delayed
from gateway.commands.doors.place import Door
from gateway.commands.lists import LimitOption, WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_done, print_facts, print_json, print_table, show_answer

delayed_cli = typer.Typer(**PLAIN, help="Delayed messages: list them, cancel one.")
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The ID from the list.", autocompletion=complete_delayed)]
PATH = "/api/lmq/delayed"
COLUMNS = (
    Column("id", "id"),
    Column("due", "due_at_ms"),
    Column("door", "door"),
    Column("to", "to"),
    Column("client", "client"),
    Column("bytes", "body_bytes"),
    Column("body", "body"),
)


@delayed_cli.command("list")
def list_delayed(
    *,
    name: Annotated[str, typer.Option("--name", help="Only messages whose destination has this in its name.")] = "",
    door: Annotated[Door | None, typer.Option("--door", "-d", help="Only messages that came by this protocol.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", help="Continue from the place that an earlier list gave.")
    ] = None,
    limit: LimitOption = 100,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List delayed messages, roughly in the order in which they are due."""
    client = AdminClient(admin, user, password)
    question = {"count": limit, "door": door, "name": name or None, "after": after}
    show_answer(lambda: client.get(PATH, question, as_member=True), _tell, as_json=as_json, watch=watch, key="items")


def _tell(found: dict[str, Any]) -> None:
    print_table(COLUMNS, found["items"])
    if found["next"] is not None:
        print(f"about {found['waiting']} wait; more: --after {found['next']}")


@delayed_cli.command("show")
def show_delayed(
    waiting_id: IdArgument,
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one delayed message with its properties."""
    found = AdminClient(admin, user, password).get(f"{PATH}/{quote(waiting_id)}", as_member=True)
    (print_json if as_json else print_facts)(found)


@delayed_cli.command("cancel")
def cancel(
    waiting_id: IdArgument,
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel one delayed message: it is never delivered."""
    AdminClient(admin, user, password).send("DELETE", f"{PATH}/{quote(waiting_id)}")
    print_done({"cancelled": waiting_id}, as_json=as_json)

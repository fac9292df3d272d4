"""Commands for the tokens of the admin API."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_tokens
from gateway.commands.lists import WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_done, print_listed, print_table, show_answer
from gateway.commands.refusing import refuse

token_cli = typer.Typer(**PLAIN, help="Make, list and revoke tokens for programs that use the admin API.")
COLUMNS = (
    Column("name", "name"),
    Column("of user", "user"),
    Column("for", "scopes"),
    Column("ends", "ends_at_ms"),
    Column("used", "used_at_ms"),
)
UNITS_S = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
NameArgument = Annotated[str, typer.Argument(help="Name of the token.")]


@token_cli.command("add")
def add(
    name: NameArgument,
    *,
    scopes: Annotated[
        list[str],
        typer.Option(
            "--scope",
            help="read, administrator, or a part: users, vhosts, policies, definitions, queues, connections, rules, "
            "tokens, gateway, messages; repeatable.",
        ),
    ],
    ends_in: Annotated[str, typer.Option(help="Lifetime, such as 12h, 30d or 4w, or never.")] = "90d",
    for_user: Annotated[str | None, typer.Option(help="User of the token; default: the caller.")] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it, this once. Programs send it as Bearer; `lmq` reads LMQ_TOKEN."""
    said = {"name": name, "scopes": scopes, "user": for_user, "ends_in_s": read_duration(ends_in)}
    found = AdminClient(admin, user, password).send("POST", "/api/lmq/tokens", said)
    print_listed(found, [found["token"]], as_json=as_json)


@token_cli.command("list")
def list_tokens(
    *,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tokens with user, scopes and end."""
    client = AdminClient(admin, user, password)
    show_answer(lambda: client.ask("/api/lmq/tokens"), _tell, as_json=as_json, watch=watch)


def _tell(found: list[dict[str, Any]]) -> None:
    rows = [{**token, "scopes": ", ".join(token["scopes"])} for token in found]
    print_table(COLUMNS, [{**row, "ends_at_ms": row["ends_at_ms"] or "never"} for row in rows])


@token_cli.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(help="Name of the token.", autocompletion=complete_tokens)],
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Revoke a token: it is refused from now on."""
    AdminClient(admin, user, password).send("DELETE", f"/api/lmq/tokens/{quote(name)}")
    print_done({"revoked": name}, as_json=as_json)


def read_duration(text: str) -> int:
    """Return a duration in seconds, 0 for one without an end."""
    if text == "never":
        return 0
    if not (text[:-1].isdecimal() and text[-1] in UNITS_S and int(text[:-1])):
        refuse(f"{text!r} is not a duration such as 12h, 30d or never")
    return int(text[:-1]) * UNITS_S[text[-1]]

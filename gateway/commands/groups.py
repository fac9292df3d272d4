"""Commands for groups of consumers."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.moments import read_moment
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import print_listed

group_cli = typer.Typer(**PLAIN, help="Send a group of consumers elsewhere.")


@group_cli.command("reset")
def reset(
    group: Annotated[str, typer.Argument(help="A group of RocketMQ's consumers.")],
    queue: Annotated[str, typer.Argument(help="A queue that it has a place on: TOPIC/NUMBER.")],
    *,
    offset: Annotated[int | None, typer.Option(min=0, help="It goes on here.")] = None,
    at: Annotated[str | None, typer.Option(help="It goes on with what was stored from this moment on.")] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have a group go on at another offset of a queue, or at a moment."""
    client = AdminClient(admin, user, password)
    wanted = {"queue": queue, "offset": offset, "at_ms": None if at is None else read_moment(at)}
    found = client.send("POST", f"/api/lmq/groups/{quote(group)}/reset", wanted)
    print_listed(found, [f"{group} goes on at {found['next_offset']} of {found['queue']}"], as_json=as_json)

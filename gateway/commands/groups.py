"""Commands for groups of consumers."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_groups
from gateway.commands.moments import read_moment
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_facts, print_json, print_listed, print_table

group_cli = typer.Typer(**PLAIN, help="Reset the offsets of a RocketMQ group.")

QUEUES = (
    Column("queue", "queue"),
    Column("lag", "lag"),
    Column("next", "next_offset"),
    Column("members", "members"),
    Column("again", "redelivered"),
    Column("light queue", "light_queue"),
)
SPARE = ("light queue", "next")


def show_group(
    group: Annotated[
        str,
        typer.Argument(help="A RocketMQ consumer group, or one of $share.", autocompletion=complete_groups),
    ],
    *,
    door: Annotated[
        str | None, typer.Option("--door", help="mqtt or rocketmq, if both have a group of this name.")
    ] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one group: its members, its dead letters, and its offset and lag on each queue."""
    found = AdminClient(admin, user, password).get(f"/api/lmq/groups/{quote(group)}", {"door": door})
    if as_json:
        print_json(found)
        return
    queues, names = found.pop("queue_details"), found["member_names"]
    more = found["members"] - len(names)
    print_facts({**found, "member_names": [*names, f"and {more} more"] if more > 0 else names})
    print_table(QUEUES, queues, SPARE)


@group_cli.command("reset")
def reset(
    group: Annotated[str, typer.Argument(help="A RocketMQ consumer group.", autocompletion=complete_groups)],
    queue: Annotated[str, typer.Argument(help="A queue that the group reads: TOPIC/NUMBER.")],
    *,
    offset: Annotated[int | None, typer.Option(min=0, help="The next offset to read.")] = None,
    at: Annotated[
        str | None, typer.Option(help="Go on with messages stored from this time on: 2026-01-31T12:00 (UTC) or -1h.")
    ] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a group go on at another offset or time of a queue."""
    client = AdminClient(admin, user, password)
    wanted = {"queue": queue, "offset": offset, "at_ms": None if at is None else read_moment(at)}
    found = client.send("POST", f"/api/lmq/groups/{quote(group)}/reset", wanted)
    print_listed(found, [f"{group} goes on at {found['next_offset']} of {found['queue']}"], as_json=as_json)

"""The command that names what connects in a loop."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient
from gateway.commands.lists import WatchOption
from gateway.commands.options import ADMIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_table, show_answer

PATH = "/api/lmq/churn"
COUNT_MAX = 256  # as the API gives at most
CONNECTIONS = (Column("host", "host"), Column("times", "count"), Column("door", "door"), Column("outcome", "outcome"))
LOGINS = (
    Column("client", "client"),
    Column("times", "count"),
    Column("user", "user"),
    Column("host", "host"),
    Column("door", "door"),
    Column("outcome", "outcome"),
)


def list_churn(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=COUNT_MAX, help="Rows of each table, at most.")] = 10,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what connects and logs in most often, within the last minute: addresses, then clients and users."""
    client = AdminClient(admin, user, password)
    show_answer(lambda: client.get(PATH, {"count": limit}), _tell, as_json=as_json, watch=watch)


def _tell(found: dict[str, Any]) -> None:
    print(f"connections of the last {found['within_s']} s")
    print_table(CONNECTIONS, found["connections"], ("outcome",))
    print(f"logins of the last {found['within_s']} s")
    print_table(LOGINS, found["logins"], ("outcome", "door", "host"))
    missed = max(found["connections_missed_max"], found["logins_missed_max"])
    if missed:
        print(f"each may have come {missed} times more often")

"""Commands for the gateway itself: its log, and what it lets go of."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from gateway.commands.client import AdminClient
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import print_listed

log_cli = typer.Typer(**PLAIN, help="The log of the running gateway: its last lines, and its level.")
retention_cli = typer.Typer(**PLAIN, help="Delete old messages that nothing needs.")
TAIL_S = 0.5  # lines of a log that is followed are shown so much late at most
TEXT_FIELDS = ("time", "level", "logger", "message")  # as a line of `log.format = "text"` has them


class Level(StrEnum):
    """How much a log says."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    DEFAULT = "default"


@log_cli.command("level")
def level(
    wanted: Annotated[
        Level | None, typer.Argument(metavar="[LEVEL]", help="The new level; without one the present level is shown.")
    ] = None,
    *,
    logger: Annotated[
        str, typer.Option("--logger", help="Only this logger and those below it, such as gateway.mqtt.")
    ] = "",
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the log level, or change it until the next start."""
    client = AdminClient(admin, user, password)
    path = "/api/lmq/log-levels"
    found = client.ask(path) if wanted is None else client.send("PUT", path, {"level": wanted, "logger": logger})
    lines = [found["level"], *(f"{name}  {level}" for name, level in found["loggers"].items())]
    print_listed(found, lines, as_json=as_json)


@log_cli.command("tail")
def tail(
    *,
    count: Annotated[int, typer.Option("--count", "-c", min=0, help="Number of lines.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines, until Ctrl-C.")] = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the last lines of the log; with --json an object a line."""
    from threading import Event

    client = AdminClient(admin, user, password)
    found = client.ask("/api/lmq/logs")
    lines = found["lines"][-count:] if count else []
    try:
        while True:
            for line in lines:
                print(line_as_json(line) if as_json else line, flush=True)
            if not follow:
                return
            Event().wait(TAIL_S)
            found = client.ask(f"/api/lmq/logs?since={found['written']}")
            lines = found["lines"]
    except KeyboardInterrupt:
        return


def line_as_json(line: str) -> str:
    """Return a line of the log as an object, which it is where `log.format` is `json`."""
    import json

    if line.startswith("{"):
        return line
    parts = line.split(" ", len(TEXT_FIELDS) - 1)
    told = dict(zip(TEXT_FIELDS, parts, strict=True)) if len(parts) == len(TEXT_FIELDS) else {"message": line}
    return json.dumps(told, ensure_ascii=False)


@retention_cli.command("run")
def run_retention(
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete now the segments that are past their time or over the size."""
    found = AdminClient(admin, user, password).send("POST", "/api/lmq/retention")
    most = found["bytes_max"]
    bound = "and no size is too large" if most is None else f"or when the log is larger than {most >> 20} MiB"
    told = (
        f"{found['segments']} segments went; the log has {found['log_bytes'] >> 20} MiB; what nobody needs goes "
        f"after {found['age_hours']} h (store.retention.age_hours), {bound} (store.retention.bytes_max)"
    )
    print_listed(found, [told], as_json=as_json)

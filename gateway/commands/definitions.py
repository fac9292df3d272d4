"""Commands for files of definitions in RabbitMQ's form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import print_done, print_listed
from gateway.commands.refusing import EXIT_NOTHING, refuse

definitions_cli = typer.Typer(**PLAIN, help="Export and import users, virtual hosts, exchanges, queues and bindings.")
VhostOption = Annotated[
    str | None, typer.Option("--vhost", help="Only this virtual host, which the file does not name; else all.")
]
STDIO = "-"


@definitions_cli.command("export")
def export(
    file: Annotated[str, typer.Argument(help="The file to write; - for the standard output.")],
    *,
    vhost: VhostOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all durable definitions to FILE, in RabbitMQ's format."""
    import json

    text = json.dumps(AdminClient(admin, user, password).send("GET", _path(vhost)), indent=1)
    if file == STDIO:
        print(text)
        return
    try:
        Path(file).write_text(f"{text}\n")
    except OSError as error:
        refuse(f"cannot write {file}: {error.strerror}", error)
    print_done({"written": file}, as_json=as_json)


@definitions_cli.command("import")
def import_definitions(
    file: Annotated[
        str, typer.Argument(help="A file by RabbitMQ or `lmq definitions export`; - for the standard input.")
    ],
    *,
    vhost: VhostOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make what FILE defines and the gateway lacks. If an entry is wrong, nothing is changed.

    What the gateway does not support is listed line by line, and the exit code is 3.
    """
    import json
    import sys

    try:
        text = sys.stdin.read() if file == STDIO else Path(file).read_text()
        document = json.loads(text)
    except OSError as error:
        refuse(f"cannot read {file}: {error.strerror}", error)
    except ValueError as error:
        refuse(f"{file} is not JSON: {error}", error)
    answer = AdminClient(admin, user, password).send("POST", _path(vhost), document)
    print_listed(answer, told(answer), as_json=as_json)
    if left_out := len(answer["not_imported"]):
        refuse(f"imported {sum(answer['imported'].values())}, not imported {left_out}", code=EXIT_NOTHING)


def told(answer: dict[str, Any]) -> list[str]:
    """Return the lines that tell what an import made, and left out."""
    counts = [f"{count} {section}" for section, count in answer["imported"].items()]
    lines = [f"imported: {', '.join(counts) or 'nothing'}"]
    lines += [f"not imported: {what}" for what in answer["not_imported"]]
    return lines


def _path(vhost: str | None) -> str:
    return "/api/definitions" if vhost is None else f"/api/definitions/{quote(vhost)}"

"""The command that says which versions are at work."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.commands.client import AdminClient
from gateway.commands.options import ADMIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import print_facts, print_json
from gateway.version import VERSION

LIBRARIES = (
    "uvloop", "uvicorn", "fastapi", "pydantic", "google-re2", "pamqp", "wsproto", "typer", "aiomqtt", "paho-mqtt",
    "aio-pika", "pyspark",
)  # fmt: skip


def version(
    *,
    server: Annotated[bool, typer.Option("--server", help="Also ask the gateway for its version.")] = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the versions of the installed packages. `lmq --version` prints only that of the gateway."""
    told: dict[str, object] = {"lmq-gateway": VERSION, **_installed()}
    if server:
        told["gateway"] = AdminClient(admin, user, password).get("/api/overview")["lmq"]["version"]
    (print_json if as_json else print_facts)(told)


def _installed() -> dict[str, object]:
    import platform
    import sqlite3
    import ssl
    from importlib import metadata

    told: dict[str, object] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "openssl": ssl.OPENSSL_VERSION,
        "sqlite": sqlite3.sqlite_version,
    }
    for name in LIBRARIES:
        try:
            told[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            told[name] = None
    return told

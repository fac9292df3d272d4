"""The command `lmq`: joins the groups of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.commands.config import config_cli
from gateway.commands.explain import explain_cli
from gateway.commands.options import PLAIN
from gateway.commands.passwords import hash_password_of
from gateway.commands.report import report_cli
from gateway.commands.serve import serve
from gateway.commands.vhosts import vhost_cli
from gateway.version import VERSION

cli = typer.Typer(name="lmq", pretty_exceptions_enable=False, **PLAIN)
cli.command()(serve)
cli.command("hash-password")(hash_password_of)
cli.add_typer(config_cli, name="config")
cli.add_typer(explain_cli, name="explain")
cli.add_typer(report_cli, name="report")
cli.add_typer(vhost_cli, name="vhost")


def main() -> None:
    """Run the command line."""
    cli()


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        print(f"lmq-gateway {VERSION}")
        raise typer.Exit


@cli.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,  # noqa: FBT002
) -> None:
    """LMQ Gateway: MQTT, AMQP 0-9-1 and RocketMQ onto one log."""
    del version

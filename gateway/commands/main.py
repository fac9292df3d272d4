"""The command `lmq`: joins the groups of commands."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gateway.commands import in_bash
from gateway.commands.benching import bench_cli
from gateway.commands.churn import list_churn
from gateway.commands.clients import connection_cli, session_cli, show_subscriptions
from gateway.commands.config import config_cli
from gateway.commands.definitions import definitions_cli
from gateway.commands.delayed import delayed_cli
from gateway.commands.exchanges import show_binding, show_exchange
from gateway.commands.explain import explain_cli
from gateway.commands.groups import group_cli, show_group
from gateway.commands.held import held_cli
from gateway.commands.itself import log_cli, retention_cli
from gateway.commands.lists import add_lists
from gateway.commands.messages import device, message, trace
from gateway.commands.options import GIVEN, PLAIN
from gateway.commands.panels import WIDTH, PanelGroup
from gateway.commands.passwords import hash_password_of
from gateway.commands.policies import policy_cli
from gateway.commands.queues import queue_cli
from gateway.commands.receiving import consume, subscribe
from gateway.commands.report import report_cli
from gateway.commands.rules import rule_cli
from gateway.commands.sending import publish
from gateway.commands.serve import serve
from gateway.commands.status import status, top
from gateway.commands.tokens import token_cli
from gateway.commands.transactions import transactions_cli
from gateway.commands.unused import is_said
from gateway.commands.users import grant, revoke, user_cli
from gateway.commands.versions import version
from gateway.commands.vhosts import vhost_cli
from gateway.version import VERSION

GONE = "PacifyFlushWrapper"  # what click puts in the place of a pipe that nobody reads, before it exits with 1

cli = typer.Typer(
    name="lmq",
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": WIDTH},
    **PLAIN | {"cls": PanelGroup},
)
cli.command()(serve)
cli.command("hash-password")(hash_password_of)
cli.command()(status)
cli.command()(top)
cli.command()(version)
cli.command()(publish)
cli.command()(subscribe)
cli.command()(consume)
cli.add_typer(bench_cli, name="bench")
cli.command()(message)
cli.command()(device)
cli.command()(trace)
add_lists(
    cli,
    {
        "connections": {"churn": list_churn},
        "subscriptions": {"show": show_subscriptions},
        "groups": {"show": show_group},
        "exchanges": {"show": show_exchange},
        "bindings": {"show": show_binding},
    },
)
cli.add_typer(delayed_cli, name="delayed")
cli.add_typer(held_cli, name="held")
cli.add_typer(transactions_cli, name="transactions")
cli.add_typer(queue_cli, name="queue")
cli.add_typer(connection_cli, name="connection")
cli.add_typer(session_cli, name="session")
cli.add_typer(group_cli, name="group")
cli.command()(grant)
cli.command()(revoke)
cli.add_typer(config_cli, name="config")
cli.add_typer(definitions_cli, name="definitions")
cli.add_typer(explain_cli, name="explain")
cli.add_typer(policy_cli, name="policy")
cli.add_typer(log_cli, name="log")
cli.add_typer(report_cli, name="report")
cli.add_typer(retention_cli, name="retention")
cli.add_typer(rule_cli, name="rule")
cli.add_typer(token_cli, name="token")
cli.add_typer(user_cli, name="user")
cli.add_typer(vhost_cli, name="vhost")


def main() -> None:
    """Run the command line; a reader of its output that is gone is no fault of it."""
    try:
        if in_bash.is_asked():
            in_bash.complete(cli)
        else:
            cli()
    except SystemExit as ended:
        if type(sys.stdout).__name__ == GONE:
            ended.code = 0
        raise


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        print(f"lmq-gateway {VERSION}")
        raise typer.Exit


@cli.callback()
def root(
    ctx: typer.Context,
    url: Annotated[str | None, typer.Option(help="URL of the admin API, as the command's --admin.")] = None,
    token: Annotated[
        str | None, typer.Option(envvar="LMQ_TOKEN", help="Token for the admin API, in place of user and password.")
    ] = None,
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """LMQ Gateway: a broker for MQTT, AMQP 0-9-1 and RocketMQ on one log."""
    del version
    GIVEN.url, GIVEN.token = url, token
    GIVEN.says_token = is_said(ctx, "token")

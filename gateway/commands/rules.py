"""Commands for the rules of the data folder: what users may do, after what the settings say."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_rules
from gateway.commands.lists import WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_done, print_table, show_answer
from gateway.commands.refusing import refuse

rule_cli = typer.Typer(**PLAIN, help="Set, list, move and remove rules: who may do what.")
NewArgument = Annotated[str, typer.Argument(help="Name of the rule.")]
NameArgument = Annotated[str, typer.Argument(help="Name of the rule.", autocompletion=complete_rules)]
BeforeOption = Annotated[
    str | None, typer.Option("--before", help="Put it before this rule.", autocompletion=complete_rules)
]
Several = list[str] | None
COLUMNS = (Column("name", "name"), Column("rule", "permit"), Column("actions", "actions"), Column("of", "of"))


class Permit(StrEnum):
    """What a rule says."""

    ALLOW = "allow"
    DENY = "deny"


@rule_cli.command("add")
def add(
    name: NewArgument,
    permit: Annotated[Permit, typer.Argument(help="allow or deny.")],
    *,
    actions: Annotated[
        Several, typer.Option("--action", help="publish, subscribe, read, write or configure; default: all.")
    ] = None,
    users: Annotated[
        Several, typer.Option("--for-user", help="User: a name, a pattern with * and ?, or re:EXPRESSION.")
    ] = None,
    groups: Annotated[Several, typer.Option("--group", help="Group of users, in the same forms.")] = None,
    clients: Annotated[Several, typer.Option("--client", help="MQTT client identifier, in the same forms.")] = None,
    addresses: Annotated[Several, typer.Option("--address", help="Network, such as 10.0.0.0/8.")] = None,
    doors: Annotated[Several, typer.Option("--door", help="mqtt, amqp or rocketmq.")] = None,
    vhosts: Annotated[Several, typer.Option("--vhost", help="Virtual host, or a pattern.")] = None,
    topics: Annotated[Several, typer.Option("--topic", help="MQTT filter, with %c and %u.")] = None,
    names: Annotated[
        Several, typer.Option("--name", help="Queue, exchange, RocketMQ topic or group, or a pattern.")
    ] = None,
    kinds: Annotated[Several, typer.Option("--kind", help="topic, group or cluster: kind of RocketMQ names.")] = None,
    before: BeforeOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set a rule. The first rule that matches decides; rules of the settings come first."""
    fields = {
        "actions": actions,
        "users": users,
        "groups": groups,
        "clients": clients,
        "addresses": addresses,
        "doors": doors,
        "vhosts": vhosts,
        "topics": topics,
        "names": names,
        "kinds": kinds,
    }
    said = {"permit": permit.value, **{field: value for field, value in fields.items() if value}}
    question = "" if before is None else f"?before={quote(before)}"
    AdminClient(admin, user, password).send("PUT", f"/api/lmq/rules/{quote(name)}{question}", said)
    print_done({"set": name}, as_json=as_json)


@rule_cli.command("list")
def list_rules(
    *,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the rules in the order in which they are checked."""
    client = AdminClient(admin, user, password)
    show_answer(lambda: client.ask("/api/lmq/rules"), _tell, as_json=as_json, watch=watch)


def _tell(found: dict[str, Any]) -> None:
    print_table(COLUMNS, [*map(_row_of, found["rules"]), {"name": "auth.default", "permit": found["default"]}])


def _row_of(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule as a row of a table: permit, actions, and its users and topics."""
    permit, actions, *said = rule["text"].split(" ", 2)
    return {
        "name": rule["name"],
        "permit": permit,
        "actions": actions,
        "of": said[0] if said else "everybody, everything",
    }


@rule_cli.command("remove")
def remove(
    name: NameArgument,
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a rule."""
    AdminClient(admin, user, password).send("DELETE", f"/api/lmq/rules/{quote(name)}")
    print_done({"removed": name}, as_json=as_json)


@rule_cli.command("move")
def move(
    name: NameArgument,
    *,
    before: BeforeOption = None,
    last: Annotated[bool, typer.Option("--last", help="Move it to the end.")] = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move a rule before another one, or to the end."""
    if last == (before is not None):
        refuse("give --before RULE or --last")
    AdminClient(admin, user, password).send("POST", f"/api/lmq/rules/{quote(name)}/move", {"before": before})
    print_done({"moved": name, "before": before}, as_json=as_json)

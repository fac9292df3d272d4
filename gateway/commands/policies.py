"""Commands for policies of AMQP's virtual hosts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_policies
from gateway.commands.lists import WatchOption
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_done, print_table, show_answer
from gateway.commands.refusing import refuse

policy_cli = typer.Typer(
    **PLAIN, help="Policies: set arguments of many queues and exchanges by patterns of their names."
)
NameArgument = Annotated[str, typer.Argument(help="Name of the policy.", autocompletion=complete_policies)]
VhostOption = Annotated[str, typer.Option("--vhost", help="The virtual host of the policy.")]
OperatorOption = Annotated[bool, typer.Option("--operator", help="Operator policies: limits that users cannot loosen.")]
COLUMNS = (
    Column("name", "name"),
    Column("vhost", "vhost"),
    Column("pattern", "pattern"),
    Column("for", "apply-to"),
    Column("definition", "definition"),
    Column("priority", "priority"),
    Column("without effect", "without_effect"),
)
SPARE = ("without effect", "priority")


@policy_cli.command("set")
def set_policy(
    name: NameArgument,
    pattern: Annotated[str, typer.Argument(help="A regular expression that may match anywhere in a name.")],
    definition: Annotated[str, typer.Argument(help='The arguments, in JSON, such as {"max-length": 1000}.')],
    *,
    priority: Annotated[
        int, typer.Option(help="Of the policies that match a name, the one with the highest applies.")
    ] = 0,
    apply_to: Annotated[
        str, typer.Option(help="queues, exchanges, classic_queues, quorum_queues, streams or all.")
    ] = "all",
    vhost: VhostOption = "/",
    operator: OperatorOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set a policy; it applies to existing queues and exchanges at once."""
    import json

    try:
        said = json.loads(definition)
    except ValueError as error:
        refuse(f"the definition is not JSON: {error}")
    body = {"pattern": pattern, "definition": said, "priority": priority, "apply-to": apply_to}
    AdminClient(admin, user, password).send("PUT", _path(vhost, name, is_operator=operator), body)
    print_done({"set": name, "vhost": vhost, "operator": operator}, as_json=as_json)


@policy_cli.command("delete")
def delete(
    name: NameArgument,
    *,
    vhost: VhostOption = "/",
    operator: OperatorOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a policy."""
    AdminClient(admin, user, password).send("DELETE", _path(vhost, name, is_operator=operator))
    print_done({"deleted": name, "vhost": vhost, "operator": operator}, as_json=as_json)


@policy_cli.command("list")
def list_policies(
    *,
    vhost: Annotated[str | None, typer.Option("--vhost", help="Only this virtual host.")] = None,
    operator: OperatorOption = False,
    watch: WatchOption = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """List policies, with the keys that have no effect here."""
    path = _path(vhost, is_operator=operator)
    client = AdminClient(admin, user, password)
    show_answer(lambda: client.get(path), _tell, as_json=as_json, watch=watch)


def _tell(found: list[dict[str, Any]]) -> None:
    print_table(COLUMNS, rows_of(found), SPARE)


def _path(*parts: str | None, is_operator: bool) -> str:
    sort = "operator-policies" if is_operator else "policies"
    return "/".join(["/api", sort, *(quote(part) for part in parts if part is not None)])


def rows_of(policies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return policies as rows of a table, each definition as `policy set` takes it."""
    import json

    return [
        {
            **policy,
            "definition": json.dumps(policy["definition"]),
            "without_effect": ", ".join(policy["lmq"]["without_effect"]),
        }
        for policy in policies
    ]

"""Commands that say where a message would go."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption

explain_cli = typer.Typer(**PLAIN, help="Say where things go, and why.")


@explain_cli.command("topic")
def explain_topic(
    topic: Annotated[str, typer.Argument(help="A topic in MQTT's form, such as a/b/c.")],
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the light queues that a publish to TOPIC would reach now, with filters, bindings and readers."""
    _explain(AdminClient(admin, user, password), {"topic": topic}, as_json=as_json)


@explain_cli.command("exchange")
def explain_exchange(
    exchange: Annotated[str, typer.Argument(help="An AMQP exchange; '' is the default one, whose keys are queues.")],
    routing_key: Annotated[str, typer.Argument(help="The routing key, such as a.b.c.")] = "",
    *,
    vhost: Annotated[str, typer.Option(help="The virtual host that the exchange is in.")] = "/",
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the light queues that a publish to EXCHANGE with ROUTING_KEY would reach now."""
    question = {"exchange": exchange, "routing_key": routing_key, "vhost": vhost}
    _explain(AdminClient(admin, user, password), question, as_json=as_json)


def _explain(client: AdminClient, question: dict[str, str], *, as_json: bool) -> None:
    import json

    found = client.get("/api/explain", question)
    print(json.dumps(found, indent=2) if as_json else "\n".join(explained(found)))


def explained(found: dict[str, Any]) -> list[str]:
    """Return the lines that tell an answer."""
    queues = found["queues"]
    reached = f"{len(queues)} light queue{'' if len(queues) == 1 else 's'}"
    what = found["topic"]
    if "exchange" in found:
        what = f"routing key {found['routing_key']!r} on {found['kind']} exchange {found['exchange']!r}"
        if found["vhost"] != "/":
            what = f"{what} in vhost {found['vhost']!r}"
        if not queues and not found["is_topic_space"]:
            return [f"{what} leads to no queue: a message is confirmed and dropped, one that is mandatory comes back"]
    lines = [f"{what} is stored once on {found['parent_topic']} and reaches {reached}"]
    for queue in queues:
        lines.append(f"  {queue['name']}" + (f" ({queue['called']})" if queue["called"] else ""))
        if queue["filters"]:
            lines.append(f"    filters: {', '.join(queue['filters'])}")
        if queue["bindings"]:
            lines.append(f"    bindings: {', '.join(queue['bindings'])}")
        lines.append(
            f"    subscriptions: {queue['subscriptions']}  readers: {queue['readers']}  next: {queue['max_offset']}"
        )
    return lines

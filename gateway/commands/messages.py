"""Commands that publish a message, and tell where one went."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.options import ADMIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import print_facts, print_json
from gateway.commands.refusing import refuse

VhostOption = Annotated[str, typer.Option("--vhost", help="Its virtual host.")]


def publish(
    key: Annotated[str, typer.Argument(help="A routing key; on amq.topic a.b.c is the topic a/b/c.")],
    body: Annotated[str | None, typer.Argument(help="The message; without it stdin is read.")] = None,
    *,
    exchange: Annotated[str, typer.Option(help="An AMQP exchange; '' leads to the queue of that name.")] = "amq.topic",
    vhost: VhostOption = "/",
    headers: Annotated[list[str] | None, typer.Option("--header", help="NAME=VALUE; again for another one.")] = None,
    count: Annotated[int, typer.Option(min=1, help="So many times.")] = 1,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
) -> None:
    """Publish a message; exit code 3 where it reaches no queue."""
    import sys
    from base64 import b64encode

    content = sys.stdin.buffer.read() if body is None else body.encode()
    pairs = [header.partition("=") for header in headers or []]
    for name, equals, _ in pairs:
        if not (name and equals):
            refuse(f"--header {name}{equals}: it has to be NAME=VALUE")
    properties: dict[str, Any] = {"delivery_mode": 2}
    if pairs:
        properties["headers"] = {name: value for name, _, value in pairs}
    wanted = {
        "routing_key": key,
        "payload": b64encode(content).decode(),
        "payload_encoding": "base64",
        "properties": properties,
    }
    client = AdminClient(admin, user, password)
    path = f"/api/exchanges/{quote(vhost)}/{quote(exchange or 'amq.default')}/publish"
    routed = [client.send("POST", path, wanted)["routed"] for _ in range(count)]
    if not all(routed):
        print("lmq: the message reaches no queue", file=sys.stderr)
        raise typer.Exit(3)


def message(
    message_id: Annotated[str, typer.Argument(help="What lists of messages call id, or RocketMQ's offset message id.")],
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where a message went: its light queues, and how far each reader is with it."""
    found = AdminClient(admin, user, password).get(f"/api/lmq/messages/{quote(message_id)}", as_member=True)
    if as_json:
        print_json(found)
        return
    print_facts({name: value for name, value in found.items() if name != "queues"})
    for queue in found["queues"]:
        print()
        print_facts(queue)

"""Commands that say where a message would go."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient
from gateway.commands.doors.place import Door
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.refusing import refuse

DELAYED = "x-delayed-message"
POLICIES = (("policy", "policy"), ("operator policy", "operator_policy"))


class Action(StrEnum):
    """What a right is about."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    READ = "read"
    WRITE = "write"
    CONFIGURE = "configure"
    ENTER = "enter"


explain_cli = typer.Typer(**PLAIN, help="Explain where messages go, and who may do what.")


@explain_cli.command("topic")
def explain_topic(
    topic: Annotated[str, typer.Argument(help="A topic in MQTT's form, such as a/b/c.")],
    *,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the light queues that a publish to TOPIC reaches now, with filters and readers."""
    if not topic:
        refuse("the topic is empty: a message has a topic such as a/b/c")
    _explain(AdminClient(admin, user, password), {"topic": topic}, as_json=as_json)


@explain_cli.command("exchange")
def explain_exchange(
    exchange: Annotated[
        str, typer.Argument(help="An AMQP exchange; '' is the default one, whose routing keys are queue names.")
    ],
    routing_key: Annotated[str, typer.Argument(help="The routing key, such as a.b.c.")] = "",
    *,
    vhost: Annotated[str, typer.Option(help="The virtual host that the exchange is in.")] = "/",
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the light queues that a publish to EXCHANGE with ROUTING_KEY reaches now."""
    question = {"exchange": exchange, "routing_key": routing_key, "vhost": vhost}
    _explain(AdminClient(admin, user, password), question, as_json=as_json)


@explain_cli.command("publish")
def explain_publish(
    *,
    door: Annotated[
        Door | None, typer.Option("--door", "-d", help="Protocol; default: MQTT with --topic, else AMQP.")
    ] = None,
    vhost: Annotated[str | None, typer.Option("--vhost", help="AMQP virtual host; default /.")] = None,
    exchange: Annotated[
        str | None, typer.Option("--exchange", help="AMQP exchange; '' is the default exchange.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="AMQP routing key.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="MQTT topic; RocketMQ: the property LMQ_TOPIC.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", help='NAME=VALUE, repeatable; 5 is a number, "5" a text.'),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", help="AMQP property, such as priority=5 or expiration=60000; repeatable."),
    ] = None,
    publisher: Annotated[str | None, typer.Option("--as", help="Also say whether this user may publish it.")] = None,
    queue: Annotated[
        str | None, typer.Option("--queue", help="Also say why this queue does not get the message.")
    ] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the route of one message, the right to publish it, and what each door shows of it."""
    by = door or (Door.AMQP if topic is None else Door.MQTT)
    if by is Door.AMQP and exchange is None and key is None:
        refuse("say what is published: --topic plant/1/temp, or for AMQP --key NAME with or without --exchange NAME")
    if by is not Door.AMQP and not topic:
        refuse(f"say what is published: --topic, such as plant/1/temp; --exchange and --key are for AMQP, not {by}")
    if by is not Door.AMQP:
        _refuse_more(by, {"--exchange": exchange, "--key": key, "--vhost": vhost})
    elif topic is not None:
        refuse("--topic is for MQTT and RocketMQ: an AMQP message has --exchange and --key")
    question = {"door": by, "vhost": vhost or "/", "exchange": exchange or "", "routing_key": key or "", "topic": topic}
    more = {"header": header, "property": properties, "user": publisher, "queue": queue}
    found = AdminClient(admin, user, password).get("/api/explain/publish", {**question, **more})
    _print(found, publish_lines, as_json=as_json)


def _refuse_more(door: Door, said: dict[str, str | None]) -> None:
    """Refuse options that say something of AMQP, beside a topic of another door."""
    names = [name for name, value in said.items() if value is not None]
    if names:
        are = "is" if len(names) == 1 else "are"
        refuse(f"{' and '.join(names)} {are} for AMQP, and --topic is for {door}: leave one of the two out")


@explain_cli.command("right")
def explain_right(
    action: Annotated[Action, typer.Argument(help="The action; enter is about --vhost.")],
    name: Annotated[
        str, typer.Argument(help="The topic, the filter, or the name of a queue, exchange, topic or group.")
    ] = "",
    *,
    somebody: Annotated[str, typer.Option("--as", help="The user; without it, a client without a name.")] = "",
    door: Annotated[Door, typer.Option("--door", "-d", help="The protocol of the client.")] = Door.MQTT,
    vhost: Annotated[str, typer.Option("--vhost", help="The virtual host of queues and exchanges.")] = "/",
    client: Annotated[str, typer.Option("--client", help="The MQTT client identifier.")] = "",
    address: Annotated[str, typer.Option("--address", help="The client's address, such as 192.0.2.7.")] = "",
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", help="A group of the user, from a token or a back end; repeatable."),
    ] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a user may do something, and which rule, permission or setting decides."""
    question = {"action": action, "name": name, "door": door, "vhost": vhost, "user": somebody}
    place = {"client": client, "address": address, "group": groups}
    found = AdminClient(admin, user, password).get("/api/explain/right", {**question, **place})
    _print(found, right_lines, as_json=as_json)


@explain_cli.command("queue")
def explain_queue(
    name: Annotated[str, typer.Argument(help="An AMQP queue.")],
    *,
    vhost: Annotated[str, typer.Option("--vhost", help="Its virtual host.")] = "/",
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the routes to an AMQP queue, its arguments, policies and contents."""
    found = AdminClient(admin, user, password).get("/api/explain/queue", {"name": name, "vhost": vhost})
    _print(found, queue_lines, as_json=as_json)


def _explain(client: AdminClient, question: dict[str, str], *, as_json: bool) -> None:
    _print(client.get("/api/explain", question), explained, as_json=as_json)


def _print(found: dict[str, Any], lines: Callable[[dict[str, Any]], list[str]], *, as_json: bool) -> None:
    import json

    print(json.dumps(found, indent=2) if as_json else "\n".join(lines(found)))


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


def publish_lines(found: dict[str, Any]) -> list[str]:
    """Return the lines that tell where a publish goes."""
    lines = explained(found)
    lines += [f"  {line}" for line in _waits(found) + _passed(found) + found["notes"]]
    if found["verdict"]:
        lines.append(f"  {'allowed' if found['is_allowed'] else 'refused'}: {found['verdict']}")
    for door, names in found["shown"].items():
        lines.append(f"  as {door} shows it")
        lines += [f"    {name}: {value}" for name, value in names.items()]
    if found["queue"] is not None:
        lines.append(f"  queue {found['queue']!r} {'does not get it' if found['why_not'] else 'gets it'}")
        lines += [f"    {reason}" for reason in found["why_not"]]
    return lines


def right_lines(found: dict[str, Any]) -> list[str]:
    """Return the line that tells whether a user may do something."""
    return [f"{'allowed' if found['is_allowed'] else 'refused'}: {found['verdict']}"]


def _waits(found: dict[str, Any]) -> list[str]:
    if not found["waits_ms"]:
        return []
    waits = f"it waits {found['waits_ms']} ms"
    delaying = [one for one in found["exchanges"] if one["kind"] == DELAYED and "(waits " not in one["by"]]
    if not delaying or not delaying[0]["by"]:
        return [f"{waits} first"]
    return [f"{waits} at exchange '{one['name']}', and goes on at once by its other ways" for one in delaying]


def _passed(found: dict[str, Any]) -> list[str]:
    return [
        f"passes {one['kind']} exchange {one['name']!r}{' by ' + one['by'] if one['by'] else ''}"
        for one in found["exchanges"]
    ]


def queue_lines(found: dict[str, Any]) -> list[str]:
    """Return the lines that tell of a queue."""
    lines = [f"queue {found['name']!r} of vhost {found['vhost']!r} is the light queue {found['light_queue']}"]
    if found["levels"]:
        lines.append(f"  and of further priorities: {', '.join(found['levels'])}")
    lines += [f"  {name}: {value}" for name, value in found["arguments"].items()]
    lines += [f"  {sort}: {found[key]}" for sort, key in POLICIES if found[key] is not None]
    lines += [f"  ruled: {name} = {value}" for name, value in found["ruled"].items()]
    lines += [f"  from: {way}" for way in found["bindings"]]
    if found["filters"]:
        lines.append(f"  filters: {', '.join(found['filters'])}")
    if found["dead_letters"] is not None:
        lines.append(f"  dead letters to: {found['dead_letters']}")
    lines.append(
        f"  ready: {found['ready']}  unacknowledged: {found['unacked']}  readers: {found['readers']}"
        f"  offsets: {found['first_offset']} to {found['next_offset']}"
    )
    return lines

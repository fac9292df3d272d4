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
    if not topic:
        refuse("the topic is empty: a message has a topic such as a/b/c")
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


@explain_cli.command("publish")
def explain_publish(
    *,
    door: Annotated[
        Door | None, typer.Option("--door", "-d", help="Without it MQTT where there is a topic, else AMQP.")
    ] = None,
    vhost: Annotated[str | None, typer.Option("--vhost", help="Of AMQP; without it /.")] = None,
    exchange: Annotated[str | None, typer.Option("--exchange", help="Of AMQP; '' is the default one.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="The routing key, of AMQP.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Of MQTT; of RocketMQ the property LMQ_TOPIC.")] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", help="NAME=VALUE, once for each; a number is one, quoted it is text."),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", help="NAME=VALUE of AMQP, such as priority=5 or expiration=60000."),
    ] = None,
    publisher: Annotated[str | None, typer.Option("--as", help="The user that publishes: may it?")] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Why does this queue not get the message?")] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where a publish would go now, by which exchanges and bindings, who may, and what each door shows of it."""
    by = door or (Door.AMQP if topic is None else Door.MQTT)
    if by is Door.AMQP and exchange is None and key is None:
        refuse("what is published? --topic plant/1/temp, or of AMQP --key NAME with or without --exchange NAME")
    if by is not Door.AMQP and not topic:
        refuse(f"what is published? --topic, such as plant/1/temp; --exchange and --key are AMQP's, not {by}'s")
    if by is not Door.AMQP:
        _refuse_more(by, {"--exchange": exchange, "--key": key, "--vhost": vhost})
    elif topic is not None:
        refuse("--topic is of MQTT and RocketMQ: a message of AMQP has --exchange and --key")
    question = {"door": by, "vhost": vhost or "/", "exchange": exchange or "", "routing_key": key or "", "topic": topic}
    more = {"header": header, "property": properties, "user": publisher, "queue": queue}
    found = AdminClient(admin, user, password).get("/api/explain/publish", {**question, **more})
    _print(found, publish_lines, as_json=as_json)


def _refuse_more(door: Door, said: dict[str, str | None]) -> None:
    """Refuse options that say something of AMQP, beside a topic of another door."""
    names = [name for name, value in said.items() if value is not None]
    if names:
        are = "is" if len(names) == 1 else "are"
        refuse(f"{' and '.join(names)} {are} of AMQP, and --topic is of {door}: leave one of the two out")


@explain_cli.command("right")
def explain_right(
    action: Annotated[Action, typer.Argument(help="What it would do; enter is asked of --vhost.")],
    name: Annotated[
        str, typer.Argument(help="The topic, the filter, or the name of a queue, exchange, topic or group.")
    ] = "",
    *,
    somebody: Annotated[str, typer.Option("--as", help="The user; without it a client that gives no name.")] = "",
    door: Annotated[Door, typer.Option("--door", "-d", help="By which it comes.")] = Door.MQTT,
    vhost: Annotated[str, typer.Option("--vhost", help="Where queues and exchanges are.")] = "/",
    client: Annotated[str, typer.Option("--client", help="Its MQTT client identifier.")] = "",
    address: Annotated[str, typer.Option("--address", help="Where it comes from, such as 192.0.2.7.")] = "",
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", help="Of a user of a token or a back end, once for each."),
    ] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show whether a user may do something, and the rule, permission or setting that decides."""
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
    """Show what leads to an AMQP queue, its light queue, and what it holds."""
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
    """Return the line that tells whether somebody may do something."""
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

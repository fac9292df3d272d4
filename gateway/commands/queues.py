"""Commands for one queue."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gateway.commands.asking import YesOption, confirm
from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_queues, complete_vhosts
from gateway.commands.finding import DoorOption, find_queue
from gateway.commands.moments import read_moment
from gateway.commands.options import ADMIN, PLAIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import Column, print_json, print_listed, print_table, tell_address
from gateway.commands.refusing import EXIT_NOTHING, refuse

queue_cli = typer.Typer(**PLAIN, help="Purge, delete, move, replay and look into one queue.")

QueueArgument = Annotated[str, typer.Argument(help="An AMQP queue.", autocompletion=complete_queues)]
DEAD_PREFIX = "%DLQ%"  # of the topics that RocketMQ's dead letters come to
VhostOption = Annotated[str, typer.Option("--vhost", help="Its virtual host.", autocompletion=complete_vhosts)]
MESSAGES = (
    Column("offset", "offset"),
    Column("id", "id"),
    Column("stored", "stored_at_ms"),
    Column("published to", "to"),
    Column("client", "client"),
    Column("stage", "stage"),
    Column("given", "given"),
    Column("bytes", "body_bytes"),
    Column("body", "body"),
)


@queue_cli.command("purge")
def purge(
    name: QueueArgument,
    *,
    vhost: VhostOption = "/",
    yes: YesOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drop all messages of an AMQP queue that no consumer has."""
    client = AdminClient(admin, user, password)
    path = f"/api/queues/{quote(vhost)}/{quote(name)}"
    _confirm(client, path, "is emptied of", yes=yes)
    answer = client.send("DELETE", f"{path}/contents")
    print_listed(answer or {"purged": name, "vhost": vhost}, [], as_json=as_json)


@queue_cli.command("delete")
def delete(
    name: QueueArgument,
    *,
    vhost: VhostOption = "/",
    if_empty: Annotated[bool, typer.Option("--if-empty", help="Not where it has messages.")] = False,
    if_unused: Annotated[bool, typer.Option("--if-unused", help="Not where it has consumers.")] = False,
    yes: YesOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete an AMQP queue, with its messages."""
    client = AdminClient(admin, user, password)
    path = f"/api/queues/{quote(vhost)}/{quote(name)}"
    _confirm(client, path, "goes with", yes=yes or if_empty)
    client.send("DELETE", f"{path}?if-empty={str(if_empty).lower()}&if-unused={str(if_unused).lower()}")
    print_listed({"deleted": name, "vhost": vhost}, [], as_json=as_json)


def _confirm(client: AdminClient, path: str, goes: str, *, yes: bool) -> None:
    """Go on where it is meant that a queue loses its messages, or where it has none."""
    if yes:
        return
    found = client.ask(path)
    count = found["messages"]
    if count:
        place = "" if found["vhost"] == "/" else f" in vhost {found['vhost']!r}"
        confirm(f"queue {found['name']!r}{place} {goes} {count} message{'' if count == 1 else 's'}", yes=False)


@queue_cli.command("move")
def move(
    name: QueueArgument,
    to: Annotated[
        str | None,
        typer.Argument(help="Another one; without it each goes back where it died.", autocompletion=complete_queues),
    ] = None,
    *,
    door: Annotated[
        str | None,
        typer.Option("--door", help="amqp or rocketmq; without it RocketMQ's where a name begins with %DLQ%."),
    ] = None,
    vhost: VhostOption = "/",
    count: Annotated[int, typer.Option(min=1, help="So many at most.")] = 1_000,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move messages to another AMQP queue, or dead letters back to the queues that they come from.

    Dead letters of a RocketMQ group, %DLQ%GROUP, go back to that group, or to a topic. Those that cannot go there stay,
    and the others go on; the exit code is 3 then.
    """
    client = AdminClient(admin, user, password)
    door = door or ("rocketmq" if name.startswith(DEAD_PREFIX) else "amqp")
    wanted = {"door": door, "vhost": vhost, "source": name, "destination": to, "count": count}
    done = client.send("POST", "/api/lmq/move", wanted)
    print_listed(done, [] if done["left"] else [f"moved {done['moved']}"], as_json=as_json)
    if done["left"]:
        refuse(f"moved {done['moved']}, {done['left']} left: {', '.join(done['reasons'])}", code=EXIT_NOTHING)


@queue_cli.command("replay")
def replay(
    name: QueueArgument,
    to: Annotated[
        str | None,
        typer.Argument(help="Another one; without it they come to the same.", autocompletion=complete_queues),
    ] = None,
    *,
    vhost: VhostOption = "/",
    offset: Annotated[int | None, typer.Option(min=0, help="From this offset on.")] = None,
    at: Annotated[
        str | None, typer.Option(help="From this moment on: 2026-01-31T12:00, UTC where it does not say, or -1h.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="So many at most.")] = 1_000,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish what came to an AMQP queue once more, consumed or not; what is in the queue stays.

    Messages that another user published under its own name are left out; the exit code is 3 then.
    """
    client = AdminClient(admin, user, password)
    at_ms = None if at is None else read_moment(at)
    wanted = {"vhost": vhost, "source": name, "destination": to, "offset": offset, "at_ms": at_ms, "count": count}
    done = client.send("POST", "/api/lmq/replay", wanted)
    told = f"replayed {done['replayed']}, the next is at offset {done['next_offset']}"
    print_listed(done, [] if done["left"] else [told], as_json=as_json)
    if done["left"]:
        refuse(f"{told}; {done['left']} left: only the user in their user_id may publish them", code=EXIT_NOTHING)


@queue_cli.command("peek")
def peek(
    name: Annotated[
        str, typer.Argument(help="A queue as its clients call it, or its light queue.", autocompletion=complete_queues)
    ],
    *,
    door: DoorOption = None,
    vhost: Annotated[str | None, typer.Option("--vhost", help="As that.")] = None,
    offset: Annotated[int | None, typer.Option(min=0, help="From here on; without it the newest.")] = None,
    at: Annotated[
        str | None, typer.Option(help="From this moment on: 2026-01-31T12:00, UTC where it does not say.")
    ] = None,
    undone: Annotated[bool, typer.Option(help="From the first message on that is not done, of an AMQP queue.")] = False,
    count: Annotated[int, typer.Option(min=1, max=200, help="So many at most.")] = 20,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at messages of any light queue; none is consumed.

    Of an AMQP queue it says how far each message is, and how often consumers were given one that is not done.
    """
    client = AdminClient(admin, user, password)
    queue = find_queue(client, name, door, vhost)
    if undone and (offset is not None or at is not None):
        refuse("--undone says where to begin, as --offset and --at do: give one of them")
    at_ms = None if at is None else read_moment(at)
    question = {"queue": queue, "offset": offset, "at_ms": at_ms, "undone": undone or None, "count": count}
    found = client.get("/api/lmq/messages", question, as_member=True)
    if not found["items"]:
        first, end = found["min_offset"], found["max_offset"]
        kept = (
            f"its offsets are {first} to {end - 1}"
            if end > first
            else f"it keeps none, the next one is at offset {end}"
        )
        print(f"lmq: '{name}' has no message there: {kept}", file=sys.stderr)
    if as_json:
        print_json(found["items"])
    elif found["items"]:
        print_table(MESSAGES, [{**one, "to": tell_address(one)} for one in found["items"]])

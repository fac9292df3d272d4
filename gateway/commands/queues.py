"""Commands for one queue."""

from __future__ import annotations

import sys
from typing import Annotated, Any

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
    """Delete the ready messages of an AMQP queue."""
    client = AdminClient(admin, user, password)
    path = f"/api/queues/{quote(vhost)}/{quote(name)}"
    _confirm(client, path, is_deleted=False, yes=yes)
    answer = client.send("DELETE", f"{path}/contents")
    print_listed(answer or {"purged": name, "vhost": vhost}, [], as_json=as_json)


@queue_cli.command("delete")
def delete(
    name: QueueArgument,
    *,
    vhost: VhostOption = "/",
    if_empty: Annotated[bool, typer.Option("--if-empty", help="Refuse if it has messages.")] = False,
    if_unused: Annotated[bool, typer.Option("--if-unused", help="Refuse if it has consumers.")] = False,
    yes: YesOption = False,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete an AMQP queue, with its messages."""
    client = AdminClient(admin, user, password)
    path = f"/api/queues/{quote(vhost)}/{quote(name)}"
    _confirm(client, path, is_deleted=True, yes=yes or if_empty)
    client.send("DELETE", f"{path}?if-empty={str(if_empty).lower()}&if-unused={str(if_unused).lower()}")
    print_listed({"deleted": name, "vhost": vhost}, [], as_json=as_json)


def _confirm(client: AdminClient, path: str, *, is_deleted: bool, yes: bool) -> None:
    """Ask before a queue with messages is purged or deleted; return if the answer is yes, or if it has none."""
    if yes:
        return
    found = client.ask(path)
    count = found["messages"]
    if count:
        place = "" if found["vhost"] == "/" else f" in vhost {found['vhost']!r}"
        queue, messages = f"queue {found['name']!r}{place}", f"{count} message{'' if count == 1 else 's'}"
        confirm(
            f"this deletes {queue} with {messages}" if is_deleted else f"this deletes {messages} of {queue}", yes=False
        )


@queue_cli.command("move")
def move(
    name: QueueArgument,
    to: Annotated[
        str | None,
        typer.Argument(
            help="The destination; without it each dead letter returns to its queue.", autocompletion=complete_queues
        ),
    ] = None,
    *,
    door: Annotated[
        str | None,
        typer.Option("--door", help="amqp or rocketmq; by default rocketmq for names that begin with %DLQ%."),
    ] = None,
    vhost: VhostOption = "/",
    count: Annotated[int, typer.Option(min=1, help="Number of messages, at most.")] = 1_000,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move messages to another AMQP queue, or dead letters back to their queues.

    Dead letters of a RocketMQ group, %DLQ%GROUP, go back to that group, or to a topic. Messages that cannot be moved
    stay, and the exit code is 3 then.
    """
    client = AdminClient(admin, user, password)
    door = door or ("rocketmq" if name.startswith(DEAD_PREFIX) else "amqp")
    if door == "rocketmq" and vhost != "/":
        refuse("--vhost is for queues of AMQP, not for those of rocketmq")
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
        typer.Argument(help="The destination queue; by default the same queue.", autocompletion=complete_queues),
    ] = None,
    *,
    vhost: VhostOption = "/",
    offset: Annotated[int | None, typer.Option(min=0, help="Begin at this offset.")] = None,
    at: Annotated[
        str | None, typer.Option(help="Begin at this time: 2026-01-31T12:00 (UTC unless it names a zone) or -1h.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of messages, at most.")] = 1_000,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish again what came to an AMQP queue, consumed or not. The queue keeps its messages.

    Messages with another user's user_id are left out; the exit code is 3 then.
    """
    client = AdminClient(admin, user, password)
    at_ms = None if at is None else read_moment(at)
    wanted = {"vhost": vhost, "source": name, "destination": to, "offset": offset, "at_ms": at_ms, "count": count}
    done = client.send("POST", "/api/lmq/replay", wanted)
    told = f"replayed {done['replayed']}, the next is at offset {done['next_offset']}"
    print_listed(done, [] if done["left"] else [told], as_json=as_json)
    if done["left"]:
        refuse(f"{told}; {done['left']} left: only the user in a message's user_id may publish it", code=EXIT_NOTHING)


@queue_cli.command("peek")
def peek(
    name: Annotated[
        str, typer.Argument(help="A queue by its name or filter, or a light queue.", autocompletion=complete_queues)
    ],
    *,
    door: DoorOption = None,
    vhost: Annotated[str | None, typer.Option("--vhost", help="Virtual host of the AMQP queue.")] = None,
    offset: Annotated[int | None, typer.Option(min=0, help="Begin at this offset; by default show the newest.")] = None,
    at: Annotated[
        str | None, typer.Option(help="Begin at this time: 2026-01-31T12:00 (UTC unless it names a zone) or -1h.")
    ] = None,
    undone: Annotated[bool, typer.Option(help="Begin at the first unfinished message of an AMQP queue.")] = False,
    count: Annotated[int, typer.Option(min=1, max=200, help="Number of messages, at most.")] = 20,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show messages of any light queue without consuming them.

    For an AMQP queue it shows the state of each message, and how often an unfinished one was delivered.
    """
    client = AdminClient(admin, user, password)
    queue = find_queue(client, name, door, vhost)
    if undone and (offset is not None or at is not None):
        refuse("give only one of --undone, --offset and --at: each says where to begin")
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
        print_table(MESSAGES, [{**one, "to": tell_address(one), "body": _tell_body(one)} for one in found["items"]])


def _tell_body(item: dict[str, Any]) -> str:
    """Return a body as text; one that is no text says that it is shown otherwise."""
    return item["body"] if item["encoding"] == "string" else f"({item['encoding']}) {item['body']}"

"""Finds a queue of any door as people call it, and shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_queues
from gateway.commands.options import ADMIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import print_facts, print_json
from gateway.commands.refusing import EXIT_MISSING, refuse

LIGHT = "%LMQ%"
DEFAULT_VHOST = "/"
PAGE_SIZE = 500  # the API's largest page
DoorOption = Annotated[
    str | None, typer.Option("--door", help="amqp, mqtt or rocketmq, if several have a queue of this name.")
]


def show_queue(
    name: Annotated[
        str, typer.Argument(help="A queue by its name or filter, or a light queue.", autocompletion=complete_queues)
    ],
    *,
    door: DoorOption = None,
    vhost: Annotated[
        str | None, typer.Option("--vhost", help="Virtual host of an AMQP queue; by default / if the queue is there.")
    ] = None,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one queue of any door: by its name or filter, or by its light queue."""
    client = AdminClient(admin, user, password)
    queue = find_queue(client, name, door, vhost)
    found = client.get(f"/api/lmq/queues/{quote(queue)}")
    (print_json if as_json else print_facts)(found)


def find_queue(client: AdminClient, name: str, door: str | None, vhost: str | None) -> str:
    """Return the light queue of the queue that people call `name`; without a virtual host first that of `/`.

    It may be a light queue by itself.
    """
    if name.startswith(LIGHT):
        if door is not None or vhost is not None:
            refuse(f"{name} is a light queue, which is one by itself: leave --door and --vhost out")
        return name
    exact = [
        one
        for one in walk_named(client, "/api/lmq/queues", name, door=door)
        if name in {one["name"], one["light_queue"]} and vhost in {None, one["vhost"]}
    ]
    if vhost is None and len(exact) > 1:
        exact = [one for one in exact if one["vhost"] in {"", DEFAULT_VHOST}] or exact
    if not exact:
        refuse(f"no queue is called '{name}'" + _where(door, vhost), code=EXIT_MISSING)
    if len(exact) > 1:
        places = ", ".join(f"{one['door']} {one['vhost']}".strip() for one in exact)
        refuse(f"several queues are called '{name}': add --door or --vhost ({places})")
    return str(exact[0]["light_queue"])


def walk_named(client: AdminClient, path: str, name: str, **asked: object) -> Iterator[dict[str, Any]]:
    """Give what a list has with that in its name, page by page: more than what is called just that."""
    page, pages = 1, 1
    while page <= pages:
        found = client.get(path, {"name": name, "page": page, "page_size": PAGE_SIZE, **asked})
        yield from found["items"]
        page, pages = page + 1, found["page_count"]


def _where(door: str | None, vhost: str | None) -> str:
    at_door = f" at the door {door}" if door else ""
    return at_door + (f" in virtual host '{vhost}'" if vhost is not None else "")

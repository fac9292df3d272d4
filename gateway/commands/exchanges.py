"""Commands that show one exchange of AMQP with its bindings, and one binding."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from gateway.commands.client import AdminClient, quote
from gateway.commands.completing import complete_exchanges, complete_queues, complete_vhosts
from gateway.commands.finding import DEFAULT_VHOST, walk_named
from gateway.commands.lists import LimitOption
from gateway.commands.options import ADMIN, AdminOption, JsonOption, PasswordOption, UserOption
from gateway.commands.output import DEFAULT_EXCHANGE, Column, print_facts, print_json, print_table
from gateway.commands.refusing import EXIT_MISSING, refuse

API_DEFAULT = "amq.default"  # what the API calls the exchange without a name
KEYS_MAX = 10  # of bindings, that are told where one of them is to be chosen
FROM_IT = (Column("destination", "destination"), Column("type", "destination_type"), Column("key", "routing_key"))
TO_IT = (Column("source", "source"), Column("key", "routing_key"))
ARGUMENTS = Column("arguments", "arguments")


class Destination(StrEnum):
    """What a binding leads to."""

    QUEUE = "queue"
    EXCHANGE = "exchange"


def show_exchange(
    name: Annotated[str, typer.Argument(help="An AMQP exchange, or (default).", autocompletion=complete_exchanges)],
    *,
    vhost: Annotated[
        str | None,
        typer.Option(
            "--vhost", help="Its virtual host; by default / if the exchange is there.", autocompletion=complete_vhosts
        ),
    ] = None,
    limit: LimitOption = 100,
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one exchange, with the bindings from it and to it: at most --limit of each."""
    client = AdminClient(admin, user, password)
    name = _path_name(name)
    path = f"/api/exchanges/{quote(_find_vhost(client, name) if vhost is None else vhost)}/{quote(name)}"
    found = client.get(path)
    question = {"page": 1, "page_size": limit}
    leaving, coming = (client.get(f"{path}/bindings/{end}", question) for end in ("source", "destination"))
    if as_json:
        ends = {"bindings_from": leaving["items"], "bindings_from_count": leaving["filtered_count"]}
        print_json({**found, **ends, "bindings_to": coming["items"], "bindings_to_count": coming["filtered_count"]})
        return
    ours = found.pop("lmq")
    found.pop("user_who_performed_action")  # which is never known
    flow = _tell_flow(found.pop("message_stats"))
    print_facts({**found, "name": found["name"] or DEFAULT_EXCHANGE, **flow, **ours})
    _print_bindings("from it", FROM_IT, leaving)
    _print_bindings("to it", TO_IT, coming)


def _tell_flow(stats: dict[str, Any]) -> dict[str, Any]:
    """Return how many messages came in and how many copies went out, with their rates, as facts."""
    told: dict[str, Any] = {}
    for end in ("in", "out"):
        told[f"messages {end}"] = stats[f"publish_{end}"]
        told[f"{end}/s"] = stats[f"publish_{end}_details"]["rate"]
    return told


def _print_bindings(title: str, columns: tuple[Column, ...], page: dict[str, Any]) -> None:
    shown, count = page["items"], page["filtered_count"]
    print(f"\nbindings {title}: {count}" + (f", the first {len(shown)} are" if len(shown) < count else ""))
    if shown:
        print_table((*columns, ARGUMENTS), shown, (ARGUMENTS.title,))


def _path_name(exchange: str) -> str:
    """Return what the API calls an exchange, which people call (default) where it has no name."""
    return API_DEFAULT if exchange in {"", DEFAULT_EXCHANGE} else exchange


def _find_vhost(client: AdminClient, exchange: str) -> str:
    """Return the virtual host that an exchange is in: `/` if it is there, else the only one that has it."""
    if exchange == API_DEFAULT:
        return DEFAULT_VHOST
    vhosts = [one["vhost"] for one in walk_named(client, "/api/exchanges", exchange) if one["name"] == exchange]
    if not vhosts:
        refuse(f"no exchange is called '{exchange}'", code=EXIT_MISSING)
    if DEFAULT_VHOST not in vhosts and len(vhosts) > 1:
        refuse(f"several exchanges are called '{exchange}': add --vhost ({', '.join(vhosts)})")
    return DEFAULT_VHOST if DEFAULT_VHOST in vhosts else str(vhosts[0])


def show_binding(
    source: Annotated[
        str, typer.Argument(help="The exchange that it leads from, or (default).", autocompletion=complete_exchanges)
    ],
    destination: Annotated[
        str, typer.Argument(help="The queue that it leads to, or an exchange.", autocompletion=complete_queues)
    ],
    key: Annotated[
        str | None, typer.Argument(help="Its routing key, or the properties_key of --json, if there are several.")
    ] = None,
    *,
    kind: Annotated[Destination, typer.Option("--type", help="What it leads to.")] = Destination.QUEUE,
    vhost: Annotated[str, typer.Option("--vhost", help="Virtual host.", autocompletion=complete_vhosts)] = "/",
    admin: AdminOption = ADMIN,
    user: UserOption = None,
    password: PasswordOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one binding between an exchange and a queue, or another exchange."""
    client = AdminClient(admin, user, password)
    way = f"{quote(_path_name(source))}/{kind.value[0]}/{quote(destination)}"
    found = client.get(f"/api/bindings/{quote(vhost)}/e/{way}")
    exact = [one for one in found if key == one["properties_key"]]
    found = exact or [one for one in found if key in {None, one["routing_key"]}]
    between = f"from '{source}' to {kind.value} '{destination}'" + ("" if key is None else f" with key '{key}'")
    if not found:
        refuse(f"no binding leads {between}", code=EXIT_MISSING)
    if len(found) > 1:
        named = "routing_key" if len({one["routing_key"] for one in found}) == len(found) else "properties_key"
        keys = [one[named] or one["properties_key"] for one in found[:KEYS_MAX]] + ["..."] * (len(found) > KEYS_MAX)
        refuse(f"several bindings lead {between}: add the key of one ({', '.join(keys)})")
    (print_json if as_json else print_facts)(found[0])

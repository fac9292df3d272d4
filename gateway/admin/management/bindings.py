"""Bindings, also those of the exchange without a name, which every queue has."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Literal
from urllib.parse import quote, quote_plus, unquote_plus

from fastapi import Response
from pamqp.commands import Exchange as ExchangeMethod, Queue as QueueMethod

from gateway.admin.login import Looker, Member
from gateway.admin.management.amqp_link import open_link
from gateway.admin.management.any_names import BindExchange, BindQueue, UnbindExchange, UnbindQueue
from gateway.admin.management.argument_values import binding_arguments, unbinding_arguments
from gateway.admin.management.declared import BindingBody
from gateway.admin.management.failures import not_found
from gateway.admin.management.listing import Asked, Item, Kind, Question, answer_kept, answer_list
from gateway.admin.management.places import (
    Scope,
    find_scope,
    find_vhosts,
    get_exchange,
    get_queue,
    get_vhost,
    real_name,
    see_vhost,
)
from gateway.admin.paths import PathName
from gateway.admin.rosters.part import Part
from gateway.admin.rosters.roster import Roster
from gateway.admin.rosters.rows_part import DefaultBindings
from gateway.admin.rosters.walked_parts import OrderedPart
from gateway.admin.routes import Routes
from gateway.admin.view import AdminView, View
from gateway.amqp.definition_draft import read_arguments
from gateway.amqp.exchanges import Binding, Exchange
from gateway.amqp.queues import VirtualHost

BINDINGS = Routes()
QUEUE = "queue"
EXCHANGE = "exchange"
Letter = Literal["q", "e"]
Placed = tuple[VirtualHost, str, Binding]  # with the name of the exchange that it leads from


@BINDINGS.get("/bindings")
async def list_bindings(view: View, looker: Looker, asked: Asked) -> Response:
    """The bindings of all virtual hosts."""
    return await _list(view, find_scope(view, looker, None), asked)


@BINDINGS.get("/bindings/{vhost}")
async def list_bindings_in(view: View, looker: Looker, asked: Asked, vhost: PathName) -> Response:
    """The bindings of one virtual host."""
    return await _list(view, find_scope(view, looker, vhost), asked)


@BINDINGS.get("/queues/{vhost}/{name}/bindings")
async def list_bindings_of_queue(view: View, looker: Looker, asked: Asked, vhost: PathName, name: PathName) -> Response:
    """The bindings that lead to a queue."""
    place = see_vhost(view, looker, vhost)
    return await answer_list(asked, KIND, _to_queue(place, get_queue(place, name).name))


@BINDINGS.get("/exchanges/{vhost}/{name}/bindings/source")
async def list_bindings_from(view: View, looker: Looker, asked: Asked, vhost: PathName, name: PathName) -> Response:
    """The bindings that lead from an exchange."""
    place = see_vhost(view, looker, vhost)
    return await answer_list(asked, KIND, _from_exchange(place, get_exchange(place, name)))


@BINDINGS.get("/exchanges/{vhost}/{name}/bindings/destination")
async def list_bindings_to(view: View, looker: Looker, asked: Asked, vhost: PathName, name: PathName) -> Response:
    """The bindings that lead to an exchange."""
    place = see_vhost(view, looker, vhost)
    bound = place.exchanges.bindings_to(get_exchange(place, name))
    return await answer_list(asked, KIND, ((place, source.name, binding) for source, binding in bound))


@BINDINGS.get("/bindings/{vhost}/e/{source}/{letter}/{destination}")
async def list_bindings_between(
    view: View, looker: Looker, asked: Asked, vhost: PathName, source: PathName, letter: Letter, destination: PathName
) -> Response:
    """The bindings from an exchange to a queue (`q`) or an exchange (`e`)."""
    see_vhost(view, looker, vhost)
    return await answer_list(asked, KIND, _between(view, vhost, source, letter, destination))


@BINDINGS.post("/bindings/{vhost}/e/{source}/{letter}/{destination}", status_code=201, response_class=Response)
async def bind(
    view: View,
    member: Member,
    vhost: PathName,
    source: PathName,
    letter: Letter,
    destination: PathName,
    wanted: BindingBody,
) -> Response:
    """Bind a queue or an exchange; the header Location tells what the binding is called."""
    exchange = get_exchange(see_vhost(view, member, vhost), source)
    async with open_link(view, member, vhost) as link:
        if letter == "q":
            queue = BindQueue(0, destination, exchange.name, wanted.routing_key, False, wanted.arguments)  # noqa: FBT003
            await link.call(queue, QueueMethod.BindOk)
        else:
            told = (0, real_name(destination), exchange.name, wanted.routing_key)
            await link.call(BindExchange(*told, False, wanted.arguments), ExchangeMethod.BindOk)  # noqa: FBT003
    terms = exchange.read_terms(read_arguments(wanted.arguments))
    key = properties_key(wanted.routing_key, binding_arguments(terms))
    return Response(status_code=201, headers={"Location": f"{quote(destination, safe='')}/{quote(key, safe='~')}"})


@BINDINGS.get("/bindings/{vhost}/e/{source}/{letter}/{destination}/{key}")
async def show_binding(
    view: View,
    looker: Looker,
    vhost: PathName,
    source: PathName,
    letter: Letter,
    destination: PathName,
    key: PathName,
) -> Item:
    """One binding."""
    see_vhost(view, looker, vhost)
    return tell_binding(_find(view, vhost, source, letter, destination, key))


@BINDINGS.delete("/bindings/{vhost}/e/{source}/{letter}/{destination}/{key}", status_code=204)
async def unbind(
    view: View,
    member: Member,
    vhost: PathName,
    source: PathName,
    letter: Letter,
    destination: PathName,
    key: PathName,
) -> None:
    """Take a binding back."""
    see_vhost(view, member, vhost)
    placed = _find(view, vhost, source, letter, destination, key)
    found, arguments = tell_binding(placed), unbinding_arguments(placed[2][2])
    async with open_link(view, member, vhost) as link:
        told = (0, destination, found["source"], found["routing_key"])
        if letter == "q":
            await link.call(UnbindQueue(*told, arguments), QueueMethod.UnbindOk)
        else:
            await link.call(UnbindExchange(*told, False, arguments), ExchangeMethod.UnbindOk)  # noqa: FBT003


def _find(view: AdminView, vhost: str, source: str, letter: Letter, destination: str, key: str) -> Placed:
    near = None
    for placed in _between(view, vhost, source, letter, destination):
        told = tell_binding(placed)["properties_key"]
        if key == told:
            return placed
        if key == unquote_plus(told):  # some clients do not quote it once more; `a+b` may be that of another, `a b`
            near = placed
    if near is None:
        raise not_found()
    return near


def _between(view: AdminView, vhost: str, source: str, letter: Letter, destination: str) -> Iterator[Placed]:
    place = get_vhost(view, vhost)
    exchange = get_exchange(place, source)
    if letter == "e":
        bound = place.exchanges.bindings_to(get_exchange(place, destination))
        return ((place, one.name, binding) for one, binding in bound if one is exchange)
    queue = get_queue(place, destination).name
    return (placed for placed in _to_queue(place, queue) if placed[1] == exchange.name)


async def _list(view: AdminView, scope: Scope, asked: Question) -> Response:
    return await answer_kept(asked, KIND, view.rosters.get(("bindings", scope), lambda: BindingRoster(view, scope)))


class BindingRoster(Roster[tuple[VirtualHost, Exchange], Placed]):
    """The bindings of some virtual hosts, or of all."""

    def __init__(self, view: AdminView, scope: Scope) -> None:
        super().__init__()
        self._view = view
        self._scope = scope

    def sources(self) -> Iterator[tuple[VirtualHost, Exchange] | None]:
        """Give the exchanges that have bindings."""
        for place in find_vhosts(self._view, self._scope):
            for exchange in place.exchanges:
                yield (place, exchange) if exchange.bindings or not exchange.name else None

    def changes(self) -> object:
        """Return the versions of what leads where; default bindings come and go with queues."""
        return [(place, place.exchanges.version) for place in find_vhosts(self._view, self._scope)]

    def open(self, source: tuple[VirtualHost, Exchange]) -> Part[Placed]:
        """Return the bindings of an exchange; the one without a name has one of each queue."""
        place, exchange = source
        if not exchange.name:
            return DefaultBindings(place)
        return OrderedPart(
            exchange.bindings.newest_values,
            lambda: len(exchange.bindings),
            lambda binding: exchange.bindings.get(binding) is binding,  # and not one that was made again
            lambda _binding: exchange.name,
            lambda binding: (place, exchange.name, binding),
            mark=lambda: exchange.change_count,
        )


def _from_exchange(place: VirtualHost, exchange: Exchange) -> Iterator[Placed]:
    if not exchange.name:
        for queue in place:
            yield place, "", (queue.name, queue.name, None)
    for binding in exchange.bindings:
        yield place, exchange.name, binding


def _to_queue(place: VirtualHost, queue: str) -> Iterator[Placed]:
    yield place, "", (queue, queue, None)
    for source, binding in place.exchanges.bindings_to(queue):
        yield place, source.name, binding


def tell_binding(placed: Placed) -> Item:
    """Return a binding as the API tells it."""
    vhost, source, (destination, key, terms) = placed
    arguments = binding_arguments(terms)
    return {
        "source": source,
        "vhost": vhost.name,
        "destination": destination.name if isinstance(destination, Exchange) else destination,
        "destination_type": EXCHANGE if isinstance(destination, Exchange) else QUEUE,
        "routing_key": key,
        "arguments": arguments,
        "properties_key": properties_key(key, arguments),
    }


def properties_key(routing_key: str, arguments: Item) -> str:
    """Return what a binding is called among those between the same two: `~` where it has no key and no arguments.

    The routing key in it is quoted as in a path, as RabbitMQ quotes it.
    """
    quoted = quote_plus(routing_key).replace("~", "%7E")
    if not arguments:
        return quoted or "~"
    digest = hashlib.blake2s(json.dumps(arguments, sort_keys=True).encode(), digest_size=6).digest()
    return f"{quoted}~{urlsafe_b64encode(digest).decode()}"


KIND: Kind[Placed] = Kind(name=lambda placed: placed[1], describe=tell_binding)

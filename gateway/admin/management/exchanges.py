"""AMQP's exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fastapi import Response

from gateway.admin.login import Looker
from gateway.admin.management.argument_values import exchange_arguments
from gateway.admin.management.listing import Asked, Item, Kind, answer_list, tell_rate
from gateway.admin.management.places import Scope, find_scope, find_vhosts, get_exchange, see_vhost
from gateway.admin.paths import PathName
from gateway.admin.routes import Routes
from gateway.admin.view import AdminView, View
from gateway.amqp.exchanges import Exchange
from gateway.amqp.queues import VirtualHost
from gateway.amqp.routing import alternate_name

EXCHANGES = Routes()
Placed = tuple[VirtualHost, Exchange]


@EXCHANGES.get("/exchanges")
async def list_exchanges(view: View, looker: Looker, asked: Asked) -> Response:
    """The exchanges of all virtual hosts."""
    return await answer_list(asked, KIND, _walk(view, find_scope(view, looker, None)))


@EXCHANGES.get("/exchanges/{vhost}")
async def list_exchanges_in(view: View, looker: Looker, asked: Asked, vhost: PathName) -> Response:
    """The exchanges of one virtual host."""
    return await answer_list(asked, KIND, _walk(view, find_scope(view, looker, vhost)))


@EXCHANGES.get("/exchanges/{vhost}/{name}")
async def show_exchange(view: View, looker: Looker, asked: Asked, vhost: PathName, name: PathName) -> Item:
    """One exchange; the one without a name is `amq.default`.

    `message_stats` counts, since the start, the messages that were published to it (`publish_in`) and the entries of
    light queues that they became (`publish_out`): for `amq.topic` of the virtual host with MQTT's topics those of all
    doors. `lmq.alternate_exchange` names the exchange that takes what no binding takes, by its arguments or a policy.
    """
    place = see_vhost(view, looker, vhost)
    exchange = get_exchange(place, name)
    ours = {"alternate_exchange": alternate_name(place.exchanges, exchange)}
    return asked.pick({**tell_exchange((place, exchange)), "lmq": ours})


def _walk(view: AdminView, scope: Scope) -> Iterator[Placed]:
    for place in find_vhosts(view, scope):
        for exchange in place.exchanges:
            yield place, exchange


def tell_exchange(placed: Placed) -> Item:
    """Return an exchange as the API tells it."""
    vhost, exchange = placed
    flow = exchange.flow
    policy = vhost.policies.rule_exchange(vhost.name, exchange.name).policy
    return {
        "name": exchange.name,
        "vhost": vhost.name,
        "type": exchange.kind,
        "durable": exchange.is_durable,
        "auto_delete": exchange.is_auto_delete,
        "internal": exchange.is_internal,
        "arguments": exchange_arguments(exchange),
        "message_stats": {
            "publish_in": flow.published_in,
            "publish_in_details": tell_rate(flow.rate_in),
            "publish_out": flow.published_out,
            "publish_out_details": tell_rate(flow.rate_out),
        },
        "policy": None if policy is None else policy.name,
        "user_who_performed_action": "",
    }


FIGURES: Mapping[str, Callable[[Placed], float]] = {
    "message_stats.publish_in": lambda placed: placed[1].flow.published_in,
    "message_stats.publish_in_details.rate": lambda placed: placed[1].flow.rate_in,
    "message_stats.publish_out": lambda placed: placed[1].flow.published_out,
    "message_stats.publish_out_details.rate": lambda placed: placed[1].flow.rate_out,
}
KIND: Kind[Placed] = Kind(name=lambda placed: placed[1].name, describe=tell_exchange, figures=FIGURES)

"""How many messages were published in virtual hosts, and what clients took there, with rates, in RabbitMQ's words."""

from __future__ import annotations

from collections.abc import Collection
from operator import add

from gateway.admin.management.listing import Item, tell_rate
from gateway.admin.view import AdminView
from gateway.amqp.queues import VirtualHost

NAMES = ("deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "redeliver", "ack")
"""Of each count of an `Outflow`."""
TAKEN = 4  # the first of them together are `deliver_get`; a question that found nothing took nothing


def tell_stats(view: AdminView, vhosts: Collection[VirtualHost]) -> Item:
    """Return the `message_stats` of some virtual hosts together."""
    counts, rates = [0] * len(NAMES), [0.0] * len(NAMES)
    outflows = [vhost.outflow for vhost in vhosts]
    if any(vhost.exchanges.topic_space is not None for vhost in vhosts):
        outflows.append(view.activity.mqtt_outflow())
    for outflow in outflows:
        counts = list(map(add, counts, outflow.counts()))
        rates = list(map(add, rates, outflow.rates))
    flows = [vhost.exchanges.flow for vhost in vhosts]
    told: Item = {
        "publish": sum(flow.published_in for flow in flows),
        "publish_details": tell_rate(sum(flow.rate_in for flow in flows)),
        "deliver_get": sum(counts[:TAKEN]),
        "deliver_get_details": tell_rate(sum(rates[:TAKEN])),
    }
    for name, count, rate in zip(NAMES, counts, rates, strict=True):
        told[name] = count
        told[f"{name}_details"] = tell_rate(rate)
    return told

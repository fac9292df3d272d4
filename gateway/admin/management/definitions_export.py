"""What of AMQP is durable, as RabbitMQ's files of definitions have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gateway.admin.management.argument_values import binding_arguments, exchange_arguments, told_arguments
from gateway.admin.management.listing import Item
from gateway.admin.management.names import OPERATOR_POLICY
from gateway.amqp.exchanges import PREDECLARED, Exchange
from gateway.amqp.policies import Policy
from gateway.amqp.queue_arguments import type_of
from gateway.amqp.queues import VirtualHost

HOST_SECTIONS = ("policies", "parameters", "queues", "exchanges", "bindings")
"""What a file of one virtual host has, in its order."""
SECTIONS = (
    "users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters", "policies", "queues",
    "exchanges", "bindings",
)  # fmt: skip
"""What a file of all of them has."""
Told = tuple[str, Item]
"""A section, and one item in it."""


def tell_definitions(vhosts: Iterable[VirtualHost]) -> Iterator[Told | None]:
    """Give what is to be written, with the virtual host in each item; None for what is left out."""
    for vhost in vhosts:
        profile = vhost.profile
        tags = list(profile.tags)
        metadata = {"description": profile.description, "tags": tags}
        if profile.queue_type:
            metadata["default_queue_type"] = profile.queue_type
        yield "vhosts", {"name": vhost.name, **metadata, "metadata": metadata}
        if profile.limits:
            limits = {"component": "vhost-limits", "name": "limits", "value": profile.limits}
            yield "parameters", {**limits, "vhost": vhost.name}
        yield from map(tell_policy_definition, vhost.policies.of_vhost(vhost.name))
        yield from _tell_queues(vhost)
        yield from _tell_exchanges(vhost)


def tell_policy_definition(policy: Policy) -> Told:
    """Return a policy; one of an operator is a parameter in such files."""
    said = {
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": policy.definition,
        "priority": policy.priority,
    }
    named = {"name": policy.name, "vhost": policy.vhost}
    if policy.is_operator:
        return "parameters", {"component": OPERATOR_POLICY, **named, "value": said}
    return "policies", {**named, **said}


def _tell_queues(vhost: VirtualHost) -> Iterator[Told | None]:
    for queue in vhost:
        if queue.is_deleted or not queue.is_durable or queue.owner is not None:
            yield None
            continue
        yield (
            "queues",
            {
                "name": queue.name,
                "vhost": vhost.name,
                "type": type_of(queue.arguments),
                "durable": True,
                "auto_delete": queue.is_auto_delete,
                "arguments": told_arguments(queue.arguments),
            },
        )


def _tell_exchanges(vhost: VirtualHost) -> Iterator[Told | None]:
    for exchange in vhost.exchanges:
        if exchange.is_durable and exchange.name not in PREDECLARED:
            yield (
                "exchanges",
                {
                    "name": exchange.name,
                    "vhost": vhost.name,
                    "type": exchange.kind,
                    "durable": True,
                    "auto_delete": exchange.is_auto_delete,
                    "internal": exchange.is_internal,
                    "arguments": exchange_arguments(exchange),
                },
            )
        yield from _tell_bindings(vhost, exchange)


def _tell_bindings(vhost: VirtualHost, exchange: Exchange) -> Iterator[Told | None]:
    for destination, key, terms in exchange.bindings:
        if isinstance(destination, Exchange):
            kind, name, is_durable = "exchange", destination.name, destination.is_durable
        else:
            queue = vhost.find(destination)
            kind, name = "queue", destination
            is_durable = queue is not None and queue.is_durable and queue.owner is None
        if not exchange.is_durable or not is_durable:
            yield None
            continue
        yield (
            "bindings",
            {
                "source": exchange.name,
                "vhost": vhost.name,
                "destination": name,
                "destination_type": kind,
                "routing_key": key,
                "arguments": binding_arguments(terms),
            },
        )
